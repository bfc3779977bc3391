"""Tasks of dask that share stored chunks: written under locks where those hold, refused where they do not."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr

import tessarr
import tessarr.xarray
from tessarr.errors import BaseZarrError, ZarrUserWarning
from tessarr.stores.memory.mapping import MappingStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.xarray.writer import locks_hold, shared_chunks


def counted(length: int, step: int) -> xr.Dataset:
    return xr.Dataset({"a": ("x", np.arange(1, length + 1))}).chunk({"x": step})


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
@pytest.mark.parametrize("layout", [{"chunks": (7,)}, {"chunks": (2,), "shards": (14,)}], ids=["chunks", "shards"])
def test_no_element_is_lost(tmp_path: Path, scheduler: str, layout: dict[str, Any]) -> None:
    ds = counted(400, 5)
    with dask.config.set(scheduler=scheduler, num_workers=2), pytest.warns(ZarrUserWarning, match="more than one task"):
        tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr", encoding={"a": layout})
    xr.testing.assert_equal(tessarr.xarray.open_dataset(tmp_path / "a.zarr").load(), ds.compute())


def test_refuse_refuses_as_xarray_does(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="would overlap multiple Dask chunks"):
        tessarr.xarray.to_zarr(
            counted(40, 5), tmp_path / "a.zarr", encoding={"a": {"chunks": (7,)}}, safe_chunks="refuse"
        )


def without_locks() -> MappingStore:
    """Make a store whose mapping other processes may share: it has no lock that reaches them."""
    return MappingStore(collections.UserDict())


def test_without_locks_that_hold_it_is_refused() -> None:
    with dask.config.set(scheduler="processes"), pytest.raises(ValueError, match="would overlap multiple Dask chunks"):
        tessarr.xarray.to_zarr(counted(40, 5), without_locks(), encoding={"a": {"chunks": (7,)}})


def test_tasks_of_one_process_are_kept_apart_by_any_lock() -> None:
    assert not locks_hold(without_locks(), {"scheduler": "processes"})
    assert locks_hold(without_locks(), {"scheduler": "threads"})
    assert locks_hold(MemoryStore(), {"scheduler": "processes"})


def test_aligned_tasks_are_not_warned_of(tmp_path: Path) -> None:
    ds = counted(40, 14)  # the last task is short, as is the last chunk
    tessarr.xarray.to_zarr(ds, tmp_path / "a.zarr", encoding={"a": {"chunks": (7,)}})
    part = ds.isel(x=slice(0, 3)).compute() * 2
    part.tessarr.to_zarr(tmp_path / "a.zarr", region={"x": slice(5, 8)})  # in two chunks, of one task
    expected = ds.a.values.copy()
    expected[5:8] = [2, 4, 6]
    assert tessarr.xarray.open_dataset(tmp_path / "a.zarr").a.values.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("blocks", "chunk", "start", "expected"),
    [((4, 4), 4, 0, (0, 2)), ((4, 4), 3, 0, (1, 3)), ((2, 2, 4), 8, 0, (1, 1)), ((3, 5), 4, 1, (0, 3))],
)
def test_shared_chunks_are_counted(blocks: tuple[int, ...], chunk: int, start: int, expected: tuple[int, int]) -> None:
    z = tessarr.create_array({}, shape=(20,), chunks=(chunk,), dtype="i4")
    assert shared_chunks((blocks,), z, (slice(start, start + sum(blocks)),)) == expected


def test_an_unknown_word_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BaseZarrError, match="unknown safe_chunks"):
        tessarr.xarray.to_zarr(counted(40, 5), tmp_path / "a.zarr", safe_chunks="warn")  # type: ignore[arg-type]
    assert not (tmp_path / "a.zarr").exists()
