"""A source that is removed, moved, made shorter or replaced while it is copied is an error, not fill values in the copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
import tessarr.plan
from tessarr.errors import ConflictError, CopyError, NodeNotFoundError, TessarrError
from tessarr.storage import LocalStore, MemoryStore
from tessarr.stores.base import Fetch
from tessarr.tools.convert import convert
from tessarr.tools.digest import digest

VALUES = np.arange(1, 41)


class Source(MemoryStore):
    """A store that calls `meanwhile` once, when chunk 1 is read."""

    meanwhile: Callable[[tessarr.Group], object] | None = None

    def _look(self, keys: Sequence[str]) -> None:
        if self.meanwhile is not None and any("c/1" in key for key in keys):
            do, self.meanwhile = self.meanwhile, None
            do(tessarr.open_group(self, mode="r+"))

    def fetch(self, requests: Sequence[Fetch]) -> Any:
        self._look([request.key for request in requests])
        return super().fetch(requests)

    def get(self, key: str, byte_range: Any = None) -> Any:
        self._look([key])
        return super().get(key, byte_range)


CHANGES: dict[str, Callable[[tessarr.Group], object]] = {
    "removed": lambda group: group.__delitem__("a"),
    "moved": lambda group: group.move("a", "b"),
    "shorter": lambda group: tessarr.open_array(group.store, path="a", mode="r+").resize((8,)),
    "replaced": lambda group: group.create_array("a", data=VALUES[::-1], chunks=(4,), overwrite=True),
    "another": lambda group: group.create_array("a", data=VALUES, chunks=(5,), overwrite=True),
}
HARMLESS: dict[str, Callable[[tessarr.Group], object]] = {
    "attributes": lambda group: group["a"].attrs.update({"units": "K"}),
    "others": lambda group: group.create_array("b", data=[1]),
}
TOOLS: dict[str, Callable[[tessarr.Group, Path], object]] = {
    "copy": lambda group, place: tessarr.copy(group["a"], tessarr.create_group(place)),
    "copy_all": lambda group, place: tessarr.copy_all(group, tessarr.create_group(place)),
    "copy_store": lambda group, place: tessarr.copy_store(group.store, LocalStore(place)),
    "from_array": lambda group, place: tessarr.from_array(place / "a", data=group["a"]),
    "convert": lambda group, place: convert(group["a"], place / "a", chunks=(5,)),
    "plan.copy": lambda group, place: tessarr.plan.copy(group, place).run(),
    "plan.rechunk": lambda group, place: tessarr.plan.rechunk(group, place, chunks=(5,)).run(),
}


def _source() -> tuple[Source, tessarr.Group]:
    store = Source()
    tessarr.create_group(store).create_array("a", data=VALUES, chunks=(4,))
    return store, tessarr.open_group(store, mode="r")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_source_that_changes_while_it_is_read_is_an_error(tool: str, change: str, tmp_path: Path) -> None:
    store, group = _source()
    store.meanwhile = CHANGES[change]
    error = TessarrError if change == "another" else ConflictError  # its chunks may have the wrong size
    with pytest.raises(error, match=r"the source was resized, replaced, moved or removed|the wrong size"):
        TOOLS[tool](group, tmp_path / "copy")
    assert store.meanwhile is None
    if tool.startswith(("plan", "convert")):
        with pytest.raises(NodeNotFoundError):
            tessarr.open(tmp_path / "copy", mode="r")


@pytest.mark.parametrize("change", HARMLESS)
@pytest.mark.parametrize("tool", TOOLS)
def test_changes_that_no_element_depends_on_are_no_error(tool: str, change: str, tmp_path: Path) -> None:
    store, group = _source()
    store.meanwhile = HARMLESS[change]
    TOOLS[tool](group, tmp_path / "copy")
    assert (tessarr.open_array(tmp_path / "copy" / "a", mode="r")[:] == VALUES).all()


@pytest.mark.parametrize("tool", ["copy", "copy_all", "copy_store", "from_array", "convert"])
def test_an_array_to_which_rows_are_appended_is_copied_as_it_was(tool: str, tmp_path: Path) -> None:
    store, group = _source()
    store.meanwhile = lambda group: tessarr.open_array(group.store, path="a", mode="r+").append([7, 7])
    TOOLS[tool](group, tmp_path / "copy")
    assert (tessarr.open_array(tmp_path / "copy" / "a", mode="r")[:40] == VALUES).all()


def test_a_plan_notices_that_its_source_was_resized_before_it_is_run(tmp_path: Path) -> None:
    for tool in (tessarr.plan.copy, tessarr.plan.rechunk):
        array = tessarr.create_array(tmp_path / "a", data=VALUES, chunks=(4,), overwrite=True)
        plan = tool(tmp_path / "a", tmp_path / "b")
        array.resize((50,))
        with pytest.raises(ConflictError, match="the source was resized"):
            plan.run()


def test_a_store_that_is_copied_replaces_nothing_that_appears_meanwhile(tmp_path: Path) -> None:
    store, _ = _source()
    store.meanwhile = lambda _: tessarr.create_array(tmp_path / "copy", name="a", data=[7, 7, 7])
    tessarr.create_group(tmp_path / "copy")
    with pytest.raises(CopyError, match="another client has stored a value"):
        tessarr.copy_store(store, LocalStore(tmp_path / "copy"), source_path="a", dest_path="a")
    assert tessarr.open_array(tmp_path / "copy" / "a", mode="r")[:].tolist() == [7, 7, 7]
    assert [path.name for path in (tmp_path / "copy" / "a" / "c").iterdir()] == ["0"]


def test_groups_of_a_rechunked_hierarchy_keep_their_format(tmp_path: Path) -> None:
    for zarr_format in (2, 3):
        group = tessarr.create_group(tmp_path / f"{zarr_format}", zarr_format=zarr_format)
        group.create_group("s", attributes={"of": "s"}).create_array("x", data=VALUES)
        tessarr.plan.rechunk(tmp_path / f"{zarr_format}", tmp_path / f"new{zarr_format}", chunks=(4,)).run()
        made = tessarr.open_group(tmp_path / f"new{zarr_format}", mode="r")
        assert made.zarr_format == zarr_format
        before, after = (digest(one) for one in (group, made))
        assert before.differing(after) == []
