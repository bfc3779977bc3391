"""Arrays of dask over stored arrays: aligned to what is stored, named alike everywhere, written without a lock."""

from __future__ import annotations

import subprocess
import sys
from collections import UserDict
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import tessarr
import tessarr.dask
import tessarr.xarray
from tessarr.errors import UnsupportedOperationError
from tessarr.stores.memory.mapping import DictStore
from tessarr.stores.memory.store import MemoryStore


def made(place: Any, shape: tuple[int, ...] = (30, 20), **layout: Any) -> tessarr.Array:
    layout = layout or {"chunks": (2, 5), "shards": (6, 10)}
    z = tessarr.create_array(place, name="a", shape=shape, dtype="i4", overwrite=True, **layout)
    z[...] = np.arange(z.size).reshape(shape)
    return z


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ("shards", ((6,) * 5, (10, 10))),
        ("chunks", ((2,) * 15, (5,) * 4)),
        ((7, -1), ((7, 7, 7, 7, 2), (20,))),
        ("auto", ((30,), (20,))),
    ],
)
def test_blocks(chunks: Any, expected: Any) -> None:
    z = made({})
    x = tessarr.dask.from_array(z, chunks=chunks)
    assert x.chunks == expected
    np.testing.assert_array_equal(x.compute(), z[...])
    np.testing.assert_array_equal(x[3, [5, 1]].compute(), z[...][3, [5, 1]])


def test_chunks_that_differ_in_shape_are_blocks() -> None:
    z = made({}, chunks=[[10, 15, 5], 20])
    x = tessarr.dask.from_array(z)
    assert x.chunks == ((10, 15, 5), (20,))
    np.testing.assert_array_equal(x.compute(), z[...])


def test_sizes_are_whole_shards() -> None:
    x = tessarr.dask.from_array(made({}), chunks="500B")
    assert all(
        sum(sizes[:n]) % step == 0 for sizes, step in zip(x.chunks, (6, 10), strict=True) for n in range(len(sizes))
    )


def test_names_are_the_same_in_another_process(tmp_path: Path) -> None:
    made(tmp_path / "a.zarr")
    program = (
        "import sys, tessarr, tessarr.dask\n"
        "print(tessarr.dask.from_array(tessarr.open_array(sys.argv[1], path='a')).name)"
    )
    run = [sys.executable, "-c", program, str(tmp_path / "a.zarr")]
    names = {subprocess.run(run, check=True, capture_output=True, text=True).stdout for _ in range(2)}
    (name,) = names
    z = tessarr.open_array(tmp_path / "a.zarr", path="a")
    assert name.strip() == tessarr.dask.from_array(z).name != tessarr.dask.from_array(z, chunks="chunks").name


def test_names_differ_for_other_places_and_other_documents(tmp_path: Path) -> None:
    places: list[Any] = [{}, {}, tmp_path / "a.zarr", tmp_path / "b.zarr"]
    names = {tessarr.dask.from_array(made(place)).name for place in places}
    assert len(names) == 4
    z = tessarr.open_array(tmp_path / "a.zarr", path="a")
    z.resize((31, 20))
    assert tessarr.dask.from_array(z).name not in names


class Counting(MemoryStore):
    """How often each chunk was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def set(self, key: str, value: Any, **options: Any) -> Any:
        self.written.append(key)
        return super().set(key, value, **options)


def test_each_shard_is_written_once_whatever_the_blocks() -> None:
    store = Counting()
    z = made(store)
    values = np.arange(600, dtype="i4").reshape(30, 20) * 3 + 1
    store.written.clear()
    with dask.config.set(scheduler="sync"):
        tessarr.dask.store(da.from_array(values, chunks=(7, 3)), z)
    np.testing.assert_array_equal(z[...], values)
    chunks = [key for key in store.written if "/c/" in key]
    assert len(chunks) == len(set(chunks)) <= 10


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    chunk=st.integers(1, 7),
    start=st.integers(0, 10),
)
def test_aligned_blocks_cover_the_region_and_share_no_stored_chunk(sizes: list[int], chunk: int, start: int) -> None:
    stop = start + sum(sizes)
    z = tessarr.create_array({}, shape=(stop + 3,), chunks=(chunk,), dtype="i1")
    (blocks,) = tessarr.dask.aligned([sizes], z, (slice(start, stop),))
    ends = start + np.cumsum(blocks)
    assert min(blocks) > 0
    assert ends[-1] == stop
    assert all(end % chunk == 0 for end in ends[:-1])


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_region_is_written_and_what_lies_beside_it_stays(tmp_path: Path, scheduler: str) -> None:
    z = made(tmp_path / "a.zarr")
    expected = z[...]
    expected[5:27, 3:19] = -1
    x = da.full((22, 16), -1, chunks=(5, 5), dtype="i4")
    tessarr.dask.store(x, z, region=(slice(5, 27), slice(3, 19)), scheduler=scheduler)
    np.testing.assert_array_equal(z[...], expected)


def test_nothing_is_written_until_it_is_computed() -> None:
    z = made({})
    later = tessarr.dask.store(da.zeros((30, 20), dtype="i4"), z, compute=False)
    assert z[...].any()
    dask.compute(later)
    assert not z[...].any()


@pytest.mark.parametrize("region", [(slice(0, 4, 2),), (3,), (slice(None),) * 3, slice(0, 5)])
def test_a_region_that_does_not_fit_is_refused(region: Any) -> None:
    with pytest.raises(ValueError, match="region"):
        tessarr.dask.store(da.zeros((30, 20), dtype="i4"), made({}), region=region)


def test_several_processes_of_a_cluster_write_one_array(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra test installs distributed")
    z = made(tmp_path / "a.zarr", shape=(120, 20))
    values = np.arange(2400, dtype="i4").reshape(120, 20) * 7
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster):
        tessarr.dask.store(da.from_array(values, chunks=(7, 20)), z)
        halves = da.from_array(values[5:100, 3:] + 1, chunks=(9, 4))
        tessarr.dask.store(halves, z, region=(slice(5, 100), slice(3, 20)))
        read = tessarr.dask.from_array(z, chunks="auto").compute()
    values[5:100, 3:] += 1
    np.testing.assert_array_equal(read, values)
    np.testing.assert_array_equal(tessarr.open_array(tmp_path / "a.zarr", path="a")[...], values)


def test_tasks_of_a_client_of_dask_write_an_array_and_a_dataset(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra test installs distributed")
    z = made(tmp_path / "a.zarr", shape=(120, 20))
    values = np.arange(2400, dtype="i4").reshape(120, 20) * 7
    x = da.from_array(values, chunks=(7, 3)) + 1
    dataset = xr.Dataset({"v": (("t", "x"), x)}, coords={"t": np.arange(120)})
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster):
        tessarr.dask.store(x, z, executor="dask")
        tessarr.xarray.to_zarr(dataset, tmp_path / "b.zarr", encoding={"v": {"chunks": (10, 20)}}, executor="dask")
    np.testing.assert_array_equal(z[...], values + 1)
    xr.testing.assert_identical(tessarr.xarray.open_dataset(tmp_path / "b.zarr").load(), dataset.compute())


@pytest.mark.parametrize("chunks", ["shards", "chunks", "auto", "1KiB"])
@pytest.mark.parametrize("shape", [(0, 20), (30, 0), (0, 0)])
def test_arrays_without_elements_are_read_and_stored(shape: tuple[int, ...], chunks: str) -> None:
    z = made({}, shape=shape)
    x = tessarr.dask.from_array(z, chunks=chunks)
    assert x.compute(scheduler="sync").shape == shape
    tessarr.dask.store(x, z)


def test_a_place_stands_for_its_array(tmp_path: Path) -> None:
    z = made(tmp_path / "a.zarr")
    x = tessarr.dask.from_array(tmp_path / "a.zarr" / "a")
    assert x.chunks == tessarr.dask.from_array(z).chunks
    tessarr.dask.store(x + 1, str(tmp_path / "a.zarr" / "a"))
    np.testing.assert_array_equal(z[...], np.arange(z.size).reshape(z.shape) + 1)


def test_texts_are_read_and_stored() -> None:
    words = np.array(["a", "bb", "", "ccc"], dtype=object)
    z = tessarr.create_array({}, shape=(4,), chunks=(3,), dtype=str)
    tessarr.dask.store(da.from_array(words, chunks=2), z)
    assert tessarr.dask.from_array(z).compute().tolist() == words.tolist()


@pytest.mark.parametrize("store_type", [MemoryStore, DictStore, UserDict])
@pytest.mark.parametrize("delayed", [False, True])
def test_tasks_in_other_processes_do_not_write_to_copies_of_a_store_in_memory(delayed: bool, store_type: type) -> None:
    z = made(store_type())
    before = z[...]
    x = da.zeros(z.shape, chunks=(6, 10), dtype="i4")

    def store() -> None:
        if delayed:
            tessarr.dask.store(x, z, compute=False).compute(scheduler="processes")
        else:
            tessarr.dask.store(x, z, scheduler="processes")

    with pytest.raises(UnsupportedOperationError, match="would be lost"):
        store()
    np.testing.assert_array_equal(z[...], before)
