"""The end of an array cuts its last chunks: writing all of them that is known keeps what another writer appended there."""

from __future__ import annotations

from contextvars import Context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr

LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"chunks": (4,)},
    "raw": {"chunks": (4,), "compressors": None},
    "v2": {"chunks": (4,), "zarr_format": 2},
    "shards": {"chunks": (2,), "shards": (4,)},
    "rectilinear": {"chunks": [[4, 6]]},
}
OLD = [-1, -2, -3, -4, -5, -6]


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return tessarr.storage.MemoryStore() if request.param == "memory" else tmp_path / "a.zarr"


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_were_appended_meanwhile_stay(layout: str, engine: str, place: Any) -> None:
    with tessarr.config.set({"engine": engine}):
        tessarr.create_array(place, data=np.array(OLD, "i4"), fill_value=0, **LAYOUTS[layout])
        mine = tessarr.open_array(place, mode="r+")
        tessarr.open_array(place, mode="r+").append([71, 72, 73])
        mine[4:6] = 5
        assert tessarr.open_array(place)[:].tolist() == [*OLD[:4], 5, 5, 71, 72, 73]
        mine[:] = 0  # which would remove chunks
        assert tessarr.open_array(place)[:].tolist() == [0] * 6 + [71, 72, 73]
        mine[:] = np.arange(6)
        assert tessarr.open_array(place)[:].tolist() == [0, 1, 2, 3, 4, 5, 71, 72, 73]


def test_rows_along_another_axis_stay(place: Any) -> None:
    tessarr.create_array(place, data=np.ones((3, 6), "i4"), chunks=(2, 4), fill_value=0)
    mine = tessarr.open_array(place, mode="r+")
    tessarr.open_array(place, mode="r+").append(np.full((3, 2), 7), axis=1)
    mine[:] = 2
    assert tessarr.open_array(place)[:].tolist() == [[2] * 6 + [7, 7]] * 3


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("layout", ["v3", "v2", "shards"])
def test_a_cut_chunk_that_cannot_be_decoded_is_replaced(layout: str, engine: str, place: Any) -> None:
    with tessarr.config.set({"engine": engine}):
        array = tessarr.create_array(place, data=np.array(OLD, "i4"), fill_value=0, **LAYOUTS[layout])
        key = array.metadata.encode_chunk_key((1,))
        array.store.set(key, b"\x07damaged")
        with pytest.raises(tessarr.errors.CodecError):
            array[5] = 1
        array[4:6] = 5
        assert array[:].tolist() == [*OLD[:4], 5, 5]


def test_a_transaction_that_writes_the_last_chunk_conflicts_with_an_append(tmp_path: Path) -> None:
    tessarr.create_group(tmp_path).create_array("a", data=np.array(OLD, "i4"), chunks=(4,), fill_value=0)
    other = tessarr.open_array(tmp_path, path="a", mode="r+")

    def change() -> None:
        with tessarr.transaction(tmp_path) as transaction:
            transaction.group["a"][4:6] = 5  # type: ignore[index]
            Context().run(other.append, [71, 72, 73])

    with pytest.raises(tessarr.errors.ConflictError):
        change()
    assert tessarr.open_array(tmp_path, path="a")[:].tolist() == [*OLD, 71, 72, 73]
