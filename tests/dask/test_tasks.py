"""Dask arrays and datasets written by tasks of an executor: each stored value by one task, whatever the blocks are."""

from __future__ import annotations

import collections
import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask.array as da
import icechunk
import numpy as np
import pytest
import xarray as xr

import tessarr
import tessarr.dask
import tessarr.xarray
from tessarr.errors import FailedTasksError, UnsupportedOperationError
from tessarr.storage import WrapperStore
from tessarr.stores.base import Store
from tessarr.stores.memory.store import MemoryStore

VALUES = np.arange(30 * 20, dtype="i4").reshape(30, 20)


def _target(place: Any) -> tessarr.Array:
    return tessarr.create_array(place, name="a", shape=(30, 20), chunks=(2, 5), shards=(6, 10), dtype="i4")


def _spawned() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


class _CountingSets(WrapperStore):
    """Count how often each chunk is written."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.sets = collections.Counter[str]()
        self.reads = collections.Counter[str]()

    def set(self, key: str, value: Any, **options: Any) -> str | None:
        self.sets[key] += 1
        return super().set(key, value, **options)

    def get(self, key: str, byte_range: Any = None) -> Any:
        self.reads[key] += 1
        return super().get(key, byte_range)


def test_each_stored_value_is_written_once_and_never_read_whatever_the_blocks_are() -> None:
    counted = _CountingSets(MemoryStore())
    z = _target(counted)
    counted.sets.clear()
    counted.reads.clear()
    with ThreadPoolExecutor(2) as pool:
        tessarr.dask.store(da.from_array(VALUES, chunks=(7, 3)), z, executor=pool)
    assert (z[...] == VALUES).all()
    assert set(counted.sets.values()) == {1}
    assert len(counted.sets) == 10
    assert not [key for key in counted.reads if "/c/" in key and counted.reads[key] > 1]


def test_processes_write_a_region_and_keep_what_is_around(tmp_path: Path) -> None:
    z = _target(tmp_path / "a.zarr")
    z[...] = -1
    region = (slice(3, 29), slice(1, 19))
    with _spawned() as pool:
        tessarr.dask.store(da.from_array(VALUES[region], chunks=(7, 3)) * 2, z, region, executor=pool)
    expected = np.full_like(VALUES, -1)
    expected[region] = VALUES[region] * 2
    assert (z[...] == expected).all()


class _Slots(Executor):
    """Run tasks when three wait; remember how many waited, and fail the first attempt of one."""

    def __init__(self, failing: int) -> None:
        self.waiting: list[tuple[Future[Any], Any, Any]] = []
        self.most, self.failing, self.asked = 0, failing, 0

    def submit(self, work: Any, *arguments: Any) -> Any:  # type: ignore[override]
        future: Future[Any] = Future()
        self.waiting.append((future, work, arguments))
        self.most, self.asked = max(self.most, len(self.waiting)), self.asked + len(arguments[1])
        if len(self.waiting) == 3 or self.asked >= 10:
            for one, call, given in self.waiting:
                self.failing -= 1
                if self.failing == 0:
                    one.set_exception(OSError("a worker was killed"))
                else:
                    one.set_result(call(*given))
            self.waiting = []
        return future

    _max_workers = 1


def test_few_tasks_are_submitted_at_a_time_and_a_failed_one_again() -> None:
    z, executor = _target({}), _Slots(failing=2)
    tessarr.dask.store(da.from_array(VALUES, chunks=(6, 10)), z, executor=executor)
    assert (z[...] == VALUES).all()
    assert executor.most <= 3
    assert executor.asked == 11


def test_tasks_that_fail_are_named_and_a_store_in_memory_stays_in_this_process(tmp_path: Path) -> None:
    x = da.from_array(VALUES, chunks=(6, 10)).map_blocks(lambda block: block.no_such, dtype="i4")
    with ThreadPoolExecutor(1) as pool, pytest.raises(FailedTasksError, match=r"10 of 10 tasks failed.*no_such"):
        tessarr.dask.store(x, _target({}), executor=pool)
    with _spawned() as pool, pytest.raises(FailedTasksError, match="copies of this store in memory"):
        tessarr.dask.store(da.from_array(VALUES), _target({}), executor=pool)
    with pytest.raises(ValueError, match="without an executor"):
        tessarr.dask.store(x, _target({}), executor="dask", compute=False)


def test_a_session_of_icechunk_is_forked_for_tasks_and_committed_once(tmp_path: Path) -> None:
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    session = repository.writable_session("main")
    _target(session.store)
    session.commit("documents")
    for number, executor in enumerate((_spawned(), ThreadPoolExecutor(2))):
        session = repository.writable_session("main")
        z = tessarr.open_array(session.store, path="a", mode="r+")
        with executor as pool:
            tessarr.dask.store(da.from_array(VALUES + number, chunks=(7, 3)), z, executor=pool)
        assert len(list(repository.ancestry(branch="main"))) == 2 + number
        session.commit("values")
        found = tessarr.open_array(repository.readonly_session("main").store, path="a", mode="r")
        assert (found[...] == VALUES + number).all()
        assert len(list(repository.ancestry(branch="main"))) == 3 + number


def test_tasks_that_fail_leave_a_session_of_icechunk_as_it_was(tmp_path: Path) -> None:
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    session = repository.writable_session("main")
    z = _target(session.store)
    x = da.from_array(VALUES, chunks=(6, 10))
    with ThreadPoolExecutor(1) as pool, pytest.raises(UnsupportedOperationError, match=r"not committed.*Commit them"):
        tessarr.dask.store(x, z, executor=pool)
    session.commit("documents")
    session = repository.writable_session("main")
    z = tessarr.open_array(session.store, path="a", mode="r+")
    broken = x.map_blocks(lambda block: block if block[0, 0] == 0 else block.no_such, dtype="i4")
    with ThreadPoolExecutor(1) as pool, pytest.raises(FailedTasksError, match="9 of 10"):
        tessarr.dask.store(broken, z, executor=pool)
    assert not session.has_uncommitted_changes


def _dataset() -> xr.Dataset:
    ds = xr.Dataset(
        {"rain": (("time", "x"), VALUES.astype("f4")), "count": ("time", np.arange(30))},
        coords={"time": np.arange(30), "x": np.linspace(0, 1, 20)},
    )
    return ds.chunk({"time": 7, "x": 3})


ENCODING = {"rain": {"chunks": (4, 10), "shards": (8, 20)}}


def test_a_dataset_is_written_by_processes_with_blocks_that_fit_no_shard(tmp_path: Path) -> None:
    with _spawned() as pool:
        tessarr.xarray.to_zarr(_dataset(), tmp_path / "a.zarr", encoding=ENCODING, executor=pool)
    found = tessarr.xarray.open_dataset(tmp_path / "a.zarr")
    xr.testing.assert_identical(found.load(), _dataset().compute())
    assert tessarr.open_array(tmp_path / "a.zarr", path="rain").shards == (8, 20)


def test_a_region_and_an_append_are_written_by_tasks(tmp_path: Path) -> None:
    place = tmp_path / "a.zarr"
    with ThreadPoolExecutor(2) as pool:
        tessarr.xarray.to_zarr(_dataset(), place, encoding=ENCODING, executor=pool)
        more = _dataset().assign_coords(time=np.arange(30, 60))
        tessarr.xarray.to_zarr(more, place, append_dim="time", executor=pool)
        part = (_dataset() + 1).isel(time=slice(5, 20)).drop_vars("x")
        tessarr.xarray.to_zarr(part, place, region={"time": slice(5, 20)}, executor=pool)
    expected = xr.concat([_dataset(), more], "time").compute()
    for name in ("rain", "count"):
        expected[name][5:20] += 1
    xr.testing.assert_equal(tessarr.xarray.open_dataset(place).load(), expected)
    with pytest.raises(ValueError, match="without an executor"):
        tessarr.xarray.to_zarr(_dataset(), place, mode="w", executor="dask", compute=False)


def test_a_dataset_in_a_session_of_icechunk_is_one_commit(tmp_path: Path) -> None:
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    session = repository.writable_session("main")
    with _spawned() as pool:
        tessarr.xarray.to_zarr(_dataset(), session.store, mode="w", encoding=ENCODING, executor=pool)
    session.commit("all at once")
    found = tessarr.xarray.open_dataset(repository.readonly_session("main").store)
    xr.testing.assert_identical(found.load(), _dataset().compute())
    assert len(list(repository.ancestry(branch="main"))) == 2
