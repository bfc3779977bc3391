"""Plans whose document somebody changed: an error that says what is wrong, never a wrong or lost value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessarr
import tessarr.plan
from tessarr.errors import MetadataValidationError, TessarrError
from tessarr.plan import Plan

VALUES = np.arange(24 * 16, dtype="i4").reshape(24, 16)
KINDS: dict[str, Callable[[Path], Plan]] = {
    "rechunk": lambda place: tessarr.plan.rechunk(place / "g/a", place / "b.zarr", chunks=(24, 4), memory="5kB"),
    "staged": lambda place: tessarr.plan.rechunk(
        place / "g/a", place / "b.zarr", chunks=(24, 4), memory="8kB", strategy="staged"
    ),
    "regroup": lambda place: tessarr.plan.rechunk(place / "g/a", place / "b.zarr", shards=(8, 16)),
    "convert": lambda place: tessarr.plan.convert(place / "g", place / "b.zarr", zarr_format=2),
    "copy": lambda place: tessarr.plan.copy(place / "g", place / "b.zarr"),
    "pyramid": lambda place: tessarr.plan.pyramid(place / "g", "a", levels=2),
    "digest": lambda place: tessarr.plan.digest(place / "g"),
    "check": lambda place: tessarr.plan.check(place / "g", data="decode"),
}
OTHERS: list[Any] = [None, True, -1, 0, 1, 3, 7, 1 << 70, 0.5, "", "x", "staged", [], [1], [[3, 24]], {}, {"a": 1}]


@pytest.fixture(autouse=True)
def _one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The memory of a task depends on its threads; what a damaged plan names is below a directory of its own."""
    monkeypatch.chdir(tmp_path)
    with tessarr.config.set({"threading.max_workers": 1}):
        yield


def _saved(place: Path, kind: str) -> dict[str, Any]:
    """Make the source and a plan, and return its document."""
    group = tessarr.create_group(place / "g")
    group.create_array("a", data=VALUES, chunks=(2, 16))
    KINDS[kind](place).save(place / "plan")
    document: dict[str, Any] = json.loads((place / "plan/plan.json").read_text())
    return document


def _places(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the members of a document are; those of metadata documents have tests of their own."""
    items: Any = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, value in items:
        yield (*at, name)
        if name not in ("document", "documents"):
            yield from _places(value, (*at, name))


def _changed(document: dict[str, Any], at: tuple[Any, ...], value: Any, how: str) -> dict[str, Any]:
    made = deepcopy(document)
    parent = made
    for name in at[:-1]:
        parent = parent[name]
    if how == "delete":
        del parent[at[-1]]
    else:
        parent[at[-1]] = value
    return made


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_plan_that_was_saved_is_loaded(kind: str, tmp_path: Path) -> None:
    _saved(tmp_path, kind)
    assert tessarr.plan.load(tmp_path / "plan").run().finished


@pytest.mark.parametrize("kind", list(KINDS))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_plan_is_described_and_run_or_an_error_of_tessarr(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("damaged")
    document = _saved(place, kind)
    at = data.draw(st.sampled_from(sorted(_places(document), key=str)))
    value, how = data.draw(st.sampled_from(OTHERS)), data.draw(st.sampled_from(["replace", "delete"]))
    (place / "plan/plan.json").write_text(json.dumps(_changed(document, at, value, how)))
    try:
        plan = tessarr.plan.load(place / "plan")
    except TessarrError as error:
        _assert_says_all(error)
        return
    str(plan.describe())
    try:
        plan.run(retries=0)
    except TessarrError:
        return
    target = place / "b.zarr"
    if target.exists():
        try:
            found: Any = tessarr.open(target, mode="r")
            array = found if isinstance(found, tessarr.Array) else found["a"]
        except (TessarrError, KeyError):  # another path was named
            return
        assert np.array_equal(array[...], VALUES)


def _assert_says_all(error: TessarrError) -> None:
    assert error.expected is not None, error
    assert error.got is not None, error
    assert error.hint, error
    assert error.key is not None, error


WRONG: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "operation": (("operation",), "move", "operation"),
    "id": (("id",), "../b", "damaged"),
    "boxes within a stored value": (("nodes", 0, "strategy", "stages", 0, 1), 3, "damaged"),
    "boxes that overlap": (("nodes", 0, "strategy", "stages", 0, 1), 0, "damaged"),
    "blocks": (("nodes", 0, "strategy", "blocks", 1), 8, "damaged"),
    "no target": (("target",), None, "damaged"),
    "a path above": (("nodes", 0, "path"), "../c", "path"),
    "text": (("nodes", 0, "strategy", "threads"), "2", r"plan\.nodes\[0\]\.strategy"),
    "truth": (("verify",), 1, r"plan\.verify"),
}


@pytest.mark.parametrize("what", list(WRONG))
def test_a_damaged_plan_says_what_is_wrong_and_where(what: str, tmp_path: Path) -> None:
    at, value, message = WRONG[what]
    document = _saved(tmp_path, "rechunk")
    (tmp_path / "plan/plan.json").write_text(json.dumps(_changed(document, at, value, "replace")))
    with pytest.raises(MetadataValidationError, match=message) as caught:
        tessarr.plan.load(tmp_path / "plan")
    _assert_says_all(caught.value)
    assert not (tmp_path / "b.zarr").exists()


@pytest.mark.parametrize("name", ["0-9999-aa.json", "x-y-z.json", "1.json", "5-2-aa.json"])
def test_a_marker_of_tasks_that_cannot_be_is_an_error(name: str, tmp_path: Path) -> None:
    _saved(tmp_path, "rechunk")
    (tmp_path / "plan/done").mkdir()
    (tmp_path / "plan/done" / name).write_text("{}")
    with pytest.raises(MetadataValidationError, match="marker") as caught:
        tessarr.plan.load(tmp_path / "plan").run()
    _assert_says_all(caught.value)
    assert not (tmp_path / "b.zarr").exists()


@pytest.mark.parametrize("text", ["{}", "[", '{"tasks": [0, 1], "results": []}', '{"tasks": [0, 1], "results": [{}]}'])
def test_a_damaged_marker_of_a_check_is_an_error(text: str, tmp_path: Path) -> None:
    _saved(tmp_path, "check")
    (tmp_path / "plan/done").mkdir()
    (tmp_path / "plan/done" / "0-1-aa.json").write_text(text)
    with pytest.raises(MetadataValidationError):
        tessarr.plan.load(tmp_path / "plan").run()
