"""Zarr v1 and v2 arrays whose fill value is null: missing chunks are undefined, so none may be left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tessarr


@pytest.mark.filterwarnings("ignore::tessarr.errors.ZarrDeprecationWarning")
@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("zarr_format", [1, 2])
def test_chunks_of_zeros_are_stored_where_there_is_no_fill_value(tmp_path: Path, zarr_format: int, engine: str) -> None:
    with tessarr.config.set({"engine": engine}):
        z = tessarr.create_array(
            str(tmp_path / "a"), shape=(6,), chunks=(2,), dtype="<i4", fill_value=None, zarr_format=zarr_format
        )
        assert z.engine.name
    z[:4] = 0
    assert z.nchunks_initialized == 2
    z[:] = np.arange(6)
    z[0:2] = 0
    z[3] = 0
    assert z.nchunks_initialized == 3
    assert z[:].tolist() == [0, 0, 2, 0, 4, 5]


def test_chunks_of_the_stated_fill_value_are_still_left_out() -> None:
    z = tessarr.create_array({}, shape=(6,), chunks=(2,), dtype="<i4", fill_value=0, zarr_format=2)
    z[:4] = 0
    assert z.nchunks_initialized == 0


def test_fields_of_zeros_are_stored_where_there_is_no_fill_value() -> None:
    z = tessarr.create_array({}, shape=(2,), chunks=(2,), dtype=[("a", "<i4")], fill_value=None, zarr_format=2)
    z["a"] = 0
    assert z.nchunks_initialized == 1
