"""What another client makes at the destination of a tool, while the tool works, is neither replaced nor removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import obstore.store
import pytest

import tessarr
from tessarr.core.stored import move as moving
from tessarr.errors import BaseZarrError, CodecError, ConflictError, ContainsArrayError, CopyError, StoreError
from tessarr.storage import LocalStore, MemoryStore, ObjectStore
from tessarr.stores.base import Fetch
from tessarr.stores.wrappers.base import ForwardingStore
from tessarr.tools.convert import convert
from tests.plan.test_beside_others_plans import Bucket


class Source(MemoryStore):
    """A store that calls `meanwhile` once, when chunk 1 is read."""

    meanwhile: Callable[[], object] | None = None

    def fetch(self, requests: Sequence[Fetch]) -> Any:
        if self.meanwhile is not None and any("c/1" in request.key for request in requests):
            do, self.meanwhile = self.meanwhile, None
            do()
        return super().fetch(requests)


def source(meanwhile: Callable[[], object], *, broken: bool = False) -> tessarr.Array:
    """Make an array of 40 numbers that are not the fill value."""
    store = Source()
    tessarr.create_array(store, data=np.arange(1, 41), chunks=(4,))
    if broken:
        store.set("c/1", b"junk")
    store.meanwhile = meanwhile
    return tessarr.open_array(store, mode="r")


def test_a_failing_conversion_keeps_what_others_made_below_the_groups_that_it_made(tmp_path: Path) -> None:
    for zarr_format in (2, 3):
        root = tessarr.create_group(tmp_path / str(zarr_format), zarr_format=zarr_format)
        z = source(lambda: root.create_array("new/theirs", data=[7]), broken=True)  # noqa: B023
        with pytest.raises(CodecError):
            convert(z, tmp_path / str(zarr_format), path="new/mine", zarr_format=zarr_format)
        assert [path for path, _ in root.members(max_depth=None)] == ["new", "new/theirs"]


def test_a_failing_conversion_keeps_the_array_that_replaced_its_own(tmp_path: Path) -> None:
    root = tessarr.create_group(tmp_path)
    z = source(lambda: root.create_array("mine", data=[7], chunks=(1,), overwrite=True), broken=True)
    with pytest.raises(CodecError):
        convert(z, tmp_path, path="mine")
    assert tessarr.open_array(tmp_path / "mine", mode="r")[:].tolist() == [7]


def test_a_conversion_that_fails_at_a_node_of_others_keeps_it(tmp_path: Path) -> None:
    class Late(MemoryStore):
        """A store in which another client creates the node while it is written under a hidden name."""

        late = True

        def set_if_not_exists(self, key: str, value: Any) -> bool:
            if ".partial/zarr.json" in key and self.late:
                self.late = False
                tessarr.create_array(self, name="new/mine", data=[7])
            return super().set_if_not_exists(key, value)

    store = Late()
    tessarr.create_group(store)
    with pytest.raises(ContainsArrayError):
        convert(source(lambda: None), store, path="new/mine")
    assert tessarr.open_array(store, path="new/mine")[:].tolist() == [7]


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_new_node_is_found_when_it_is_complete(kind: str, tmp_path: Path) -> None:
    """So a conversion that is killed leaves no array without its values, in stores that can rename."""
    store: Any = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    root = tessarr.create_group(store, attributes={"theirs": 1})
    tessarr.consolidate_metadata(store)
    seen: list[list[tuple[str, object]]] = []
    convert(
        source(lambda: seen.append([*tessarr.open_group(store).members(max_depth=None)])), root._store, path="new/mine"
    )
    assert [path for path, _ in seen[0]] == ["new"]
    assert [path for path, _ in tessarr.open_group(store).members(max_depth=None)] == ["new", "new/mine"]
    assert tessarr.open_array(store, path="new/mine", mode="r")[:3].tolist() == [1, 2, 3]
    assert not any("partial" in key for key in store.list())


@pytest.mark.parametrize("name", ["q.zarr", "q.zip"])
def test_a_conversion_replaces_no_data_that_appeared_meanwhile(name: str, tmp_path: Path) -> None:
    place = tmp_path / name

    def store(values: list[int]) -> None:
        if name.endswith(".zip"):
            tessarr.save_array(place, np.array(values))
        else:
            tessarr.create_array(place, data=values)

    with pytest.raises(BaseZarrError, match="something is at the destination"):
        convert(source(lambda: store([7, 7, 7])), place)
    assert tessarr.open_array(place, mode="r")[:].tolist() == [7, 7, 7]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_conversion_replaces_no_directory_of_others_that_is_not_zarr(overwrite: bool, tmp_path: Path) -> None:
    def make() -> None:
        (tmp_path / "q").mkdir()
        (tmp_path / "q" / "thesis.txt").write_text("x")

    with pytest.raises(BaseZarrError, match="not Zarr" if overwrite else "something is at the destination"):
        convert(source(make), tmp_path / "q", overwrite=overwrite)
    assert [path.name for path in tmp_path.rglob("*")] == ["q", "thesis.txt"]


def test_a_conversion_may_take_an_empty_directory(tmp_path: Path) -> None:
    for name in ("q.zarr", "q.zip"):
        convert(source((tmp_path / name).mkdir), tmp_path / name)
        assert tessarr.open_array(tmp_path / name, mode="r")[0] == 1


def test_a_move_that_fails_keeps_the_chunks_of_the_node_in_its_way() -> None:
    class Late(Bucket):
        """A store that cannot rename, in which another client creates the node while chunks are copied."""

        late = False

        def set(self, key: str, value: Any, **options: Any) -> None:
            super().set(key, value, **options)
            if key == "b/c/1" and self.late:
                self.late = False
                tessarr.create_array(self, name="b", data=[7, 7, 7], chunks=(1,))

    store = Late()
    group = tessarr.create_group(store)
    group.create_array("a", data=np.arange(1, 7), chunks=(1,))
    store.late = True
    with pytest.raises((ConflictError, CopyError)):
        group.move("a", "b")
    for path, values in (("a", [1, 2, 3, 4, 5, 6]), ("b", [7, 7, 7])):
        assert tessarr.open_array(store, path=path, mode="r")[:].tolist() == values


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_conversion_that_cannot_be_put_in_place_leaves_the_old_node(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    root = tessarr.create_group(store)
    root.create_array("a", data=[7, 7, 7], attributes={"old": True})
    move = moving.move_node

    def fails(where: Any, source: str, dest: str, **options: Any) -> None:
        if dest == "a" and "old" not in tessarr.open_array(where, path=source, mode="r").attrs:
            raise StoreError("the disk is full")
        move(where, source, dest, **options)

    monkeypatch.setattr(moving, "exchange_nodes", lambda *_: False)  # as where a file system cannot
    monkeypatch.setattr(moving, "move_node", fails)
    with pytest.raises(StoreError, match="the disk is full"):
        convert(source(lambda: None), store, path="a", overwrite=True)
    assert tessarr.open_array(store, path="a", mode="r")[:].tolist() == [7, 7, 7]
    assert {key.partition("/")[0] for key in store.list()} == {"a", "zarr.json"}


def test_a_conversion_that_has_removed_the_old_node_and_fails_leaves_the_new_one() -> None:
    """In object storage the old node is removed first: then the new one is all there is."""
    store = ObjectStore(obstore.store.MemoryStore())
    tessarr.create_group(store).create_array("a", data=[7, 7, 7])

    class Full(ForwardingStore):
        def set_if_not_exists(self, key: str, value: Any) -> bool:
            if key == "a/zarr.json":
                raise StoreError("the bucket is full")
            return super().set_if_not_exists(key, value)

    with pytest.raises(StoreError, match="the bucket is full") as trouble:
        convert(source(lambda: None), Full(store), path="a", overwrite=True)
    place = trouble.value.__notes__[0].partition("the new one is at /")[2].partition(":")[0]
    tessarr.open_group(store).move(place, "a")
    assert tessarr.open_array(store, path="a", mode="r")[:3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_chunk_that_is_stored_between_two_renames_is_not_in_the_way(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    tessarr.create_group(store).create_array("a", data=[7, 7, 7])
    move = moving.move_node

    def beside(where: Any, source: str, dest: str, **options: Any) -> None:
        move(where, source, dest, **options)
        if source == "a":
            where.set("a/c/0", b"of a writer of the old array")

    monkeypatch.setattr(moving, "exchange_nodes", lambda *_: False)  # as where a file system cannot
    monkeypatch.setattr(moving, "move_node", beside)
    convert(source(lambda: None), store, path="a", overwrite=True)
    assert tessarr.open_array(store, path="a", mode="r")[:3].tolist() == [1, 2, 3]
    assert {key.partition("/")[0] for key in store.list()} == {"a", "zarr.json"}


def test_a_conversion_is_in_place_before_the_old_node_is_removed() -> None:
    class Slow(MemoryStore):
        found: Any = None

        def delete_prefix(self, prefix: str) -> None:
            if any(key.startswith(prefix) for key in self.list()):
                self.found = tessarr.open_array(self, path="a", mode="r")[:3].tolist()
            super().delete_prefix(prefix)

    store = Slow()
    tessarr.create_group(store).create_array("a", data=[7, 7, 7])
    convert(source(lambda: None), store, path="a", overwrite=True)
    assert store.found == [1, 2, 3]
    assert {key.partition("/")[0] for key in store.list()} == {"a", "zarr.json"}
