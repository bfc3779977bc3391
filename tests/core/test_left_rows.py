"""What an append or a shrink leaves beyond the shape in a local directory: an array that grows shows nothing of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.array_parts import append as appends
from tessarr.core.array_parts import resize as resizes
from tessarr.errors import ConflictError, StaleNodeError
from tessarr.tools.migrate import migrate

KILLED = """
import os, sys
import numpy as np
import tessarr
from tessarr.core.array_parts import append as appends

appends.change_shape_steps = lambda *_: os._exit(9)  # between the rows and the shape
tessarr.open_array(sys.argv[1], mode="r+").append(np.full((7, 2), 9, "i4"))
"""
KILLED_SHRINK = """
import os, sys
import tessarr
from tessarr.core.array_parts import resize as resizes

resizes.delete_outside_steps = lambda *_: os._exit(9)  # between the shape and the chunks
tessarr.open_array(sys.argv[1], mode="r+").resize((6, 2))
"""
LAYOUTS: dict[str, dict[str, Any]] = {
    "v2": {"chunks": (4, 2), "zarr_format": 2},
    "v3": {"chunks": (4, 2)},
    "shards": {"chunks": (2, 2), "shards": (4, 2)},
    "grid of several lengths": {"chunks": [[4, 2], [2]]},
}
LOCK = ".shape.tessarr-lock"


def appended_in_part(path: Path, layout: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make an array of six rows, to which an append has stored seven more, and failed."""
    array: Any = tessarr.create_array(path, data=np.ones((6, 2), "i4"), fill_value=0, **layout)

    async def fail(*_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(appends, "change_shape_steps", fail)
        with pytest.raises(OSError, match="no space"):
            array.append(np.full((7, 2), 9, "i4"))
    assert array.shape == tessarr.open_array(path).shape == (6, 2)
    return array


@pytest.fixture(params=LAYOUTS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    appended_in_part(tmp_path / "a.zarr", LAYOUTS[request.param], monkeypatch)
    return tmp_path / "a.zarr"


def rows(path: Path) -> Any:
    return tessarr.open_array(path)[:, 0].tolist()


def test_an_array_that_grows_shows_nothing_of_a_killed_append(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    tessarr.create_array(path, data=np.ones((6, 2), "i4"), fill_value=0, chunks=(4, 2))
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == 9
    tessarr.open_array(path, mode="r+").resize((20, 2))
    assert rows(path) == [1] * 6 + [0] * 14


def test_an_array_that_grows_shows_nothing_of_an_append_that_failed(place: Path) -> None:
    tessarr.open_array(place, mode="r+").resize((20, 2))
    assert rows(place) == [1] * 6 + [0] * 14
    assert not (place / LOCK).exists()


def test_a_shorter_append_follows_one_that_failed(place: Path) -> None:
    array = tessarr.open_array(place, mode="r+")
    assert array.append(np.full((1, 2), 3, "i4")) == (7, 2)
    array.resize((20, 2))
    assert rows(place) == [1] * 6 + [3] + [0] * 13


@pytest.mark.parametrize("place", ["v2", "v3", "shards"], indirect=True)
def test_what_another_program_has_made_visible_stays(place: Path) -> None:
    document = place / (".zarray" if (place / ".zarray").exists() else "zarr.json")
    metadata = json.loads(document.read_text())
    document.write_text(json.dumps({**metadata, "shape": [8, 2]}))
    tessarr.open_array(place, mode="r+").resize((20, 2))
    assert rows(place) == [1] * 6 + [9] * 2 + [0] * 12


def test_a_transaction_leaves_the_note_to_the_next_one(place: Path) -> None:
    with tessarr.transaction(place) as tx:
        tx.array.append(np.full((1, 2), 3, "i4"))
    tessarr.open_array(place, mode="r+").resize((20, 2))
    assert rows(place) == [1] * 6 + [3] + [0] * 13


@pytest.mark.parametrize(
    "note",
    [
        *("", "x", "[]", "{}", '{"append":7}', '{"append":[0,-1,9]}', '{"append":[5,6,9]}', '{"append":[true,6,9]}'),
        *('{"append":[0,6]}', '{"shrink":7}', '{"shrink":[]}', '{"shrink":[9,9]}', '{"shrink":[-1]}', '{"other":[9]}'),
        '{"append":[0,6,9],"shrink":[9]}',
    ],
)
def test_another_note_is_ignored(note: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    array: Any = tessarr.create_array(path, data=np.ones(6, "i4"), chunks=(4,), fill_value=0)
    (path / LOCK).write_text(f"note:{note}")
    array.resize((9,))
    assert not (path / LOCK).exists()
    array.append(np.full(2, 2, "i4"))
    assert array[:].tolist() == [1] * 6 + [0] * 3 + [2] * 2
    assert not (path / LOCK).exists()


def shrunk_in_part(path: Path, layout: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make an array of twenty rows, of which a resize has left six in the shape, and all of the chunks."""
    array: Any = tessarr.create_array(path, data=np.ones((20, 2), "i4"), fill_value=0, **layout)

    async def fail(*_: object) -> None:
        raise OSError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(resizes, "delete_outside_steps", fail)
        with pytest.raises(OSError, match="gone"):
            array.resize((6, 2))
    assert array.shape == tessarr.open_array(path).shape == (6, 2)
    return array


def chunks(path: Path) -> int:
    return sum(name.is_file() for name in path.rglob("*[0-9]"))


def test_an_array_that_grows_shows_nothing_that_a_killed_shrink_was_to_delete(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    tessarr.create_array(path, data=np.ones((20, 2), "i4"), fill_value=0, chunks=(4, 2))
    assert subprocess.run([sys.executable, "-c", KILLED_SHRINK, str(path)], check=False).returncode == 9
    assert tessarr.open_array(path).shape == (6, 2)
    tessarr.open_array(path, mode="r+").resize((20, 2))
    assert rows(path) == [1] * 8 + [0] * 12  # the edge chunk keeps its elements
    assert not (path / LOCK).exists()


@pytest.mark.parametrize("layout", ["v2", "v3", "shards"])
@pytest.mark.parametrize("few", [10_000, 0])
def test_a_shrink_that_failed_is_ended_by_the_next_change_of_the_shape(
    layout: str, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tessarr.core.array_parts.region_io._FEW", few)
    path = tmp_path / "a.zarr"
    array = shrunk_in_part(path, LAYOUTS[layout], monkeypatch)
    before = chunks(path)
    assert array.append(np.full((3, 2), 3, "i4")) == (9, 2)
    assert chunks(path) < before
    array.resize((20, 2))
    assert rows(path) == [1] * 6 + [3] * 3 + [0] * 11
    assert not (path / LOCK).exists()


def test_chunks_that_another_program_has_made_visible_again_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.zarr"
    shrunk_in_part(path, LAYOUTS["v3"], monkeypatch)
    document = path / "zarr.json"
    document.write_text(json.dumps({**json.loads(document.read_text()), "shape": [10, 2]}))
    tessarr.open_array(path, mode="r+").resize((20, 2))
    assert rows(path) == [1] * 12 + [0] * 8


def test_a_shrink_that_is_refused_leaves_no_note_for_the_chunks_that_were_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    tessarr.create_array(path, data=np.ones((20, 2), "i4"), fill_value=0, chunks=(4, 2))
    late: Any = tessarr.open_array(path, mode="r+")
    with pytest.warns(tessarr.errors.ZarrUserWarning, match="kept"):
        tessarr.open_array(path, mode="r+").resize((6, 2), delete_outside_chunks=False)
    with pytest.raises(ConflictError):
        late.resize((3, 2))
    tessarr.open_array(path, mode="r+").resize((20, 2))
    assert rows(path) == [1] * 20


@pytest.mark.filterwarnings("ignore:Both zarr.json")
def test_a_note_is_left_to_objects_of_the_newest_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one may have a shorter shape, beyond which there are rows by now."""
    path = tmp_path / "a.zarr"
    tessarr.create_array(path, data=np.ones((6, 2), "i4"), fill_value=0, **LAYOUTS["v2"])
    old: Any = tessarr.open_array(path, mode="r+")
    migrate(path)
    new: Any = tessarr.open_array(path, mode="r+")

    def stop(_: object) -> None:
        raise OSError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(appends, "note_end", stop)
        with pytest.raises(OSError, match="stopped"):
            new.append(np.full((7, 2), 9, "i4"))
    with pytest.raises(StaleNodeError):
        old.resize((4, 2))
    assert rows(path) == [1] * 6 + [9] * 7
