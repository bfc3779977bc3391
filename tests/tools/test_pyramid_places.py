"""Pyramids in ZIP archives, of arrays whose chunks differ, and of arrays that change while a run is stopped."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.conventions import multiscales
from tessarr.errors import ContainsArrayError
from tessarr.storage import ForwardingStore
from tessarr.stores.database.sqlite import SQLiteStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.zip.store import ZipStore
from tessarr.tools.pyramid import build_pyramid
from tessarr.tools.pyramid.grid import lengths
from tessarr.tools.pyramid.reduce import reduce
from tests.narrow import array_of, bytes_of
from tests.tools.stopping import StoppedError, stop_after

VALUES = np.arange(40 * 40, dtype="i4").reshape(40, 40)


def archive(place: Path, **kwargs: Any) -> Path:
    with ZipStore(place, mode="w") as store:
        group = tessarr.create_group(store, **kwargs)
        group.create_array("0", data=VALUES, chunks=(8, 8), dimension_names=("y", "x") if not kwargs else None)
    return place


# -- archives ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_levels_of_an_archive_are_put_into_it(tmp_path: Path, zarr_format: Any) -> None:
    place = archive(tmp_path / "a.zip", **({} if zarr_format == 3 else {"zarr_format": 2}))
    build_pyramid(place, "0", levels=2, memory=1)
    assert os.listdir(tmp_path) == ["a.zip"]
    group = tessarr.open_group(place, mode="r")
    np.testing.assert_array_equal(array_of(group["0"])[...], VALUES)
    np.testing.assert_array_equal(array_of(group["1"])[...], reduce(VALUES, (2, 2), "mean"))
    np.testing.assert_array_equal(array_of(group["2"])[...], reduce(reduce(VALUES, (2, 2), "mean"), (2, 2), "mean"))
    assert multiscales.levels(group.attrs.asdict()) == ("0", "1", "2")


def test_an_archive_that_a_run_was_stopped_in_is_as_it_was_and_the_next_run_goes_on(tmp_path: Path) -> None:
    place = archive(tmp_path / "a.zip")
    before = place.read_bytes()
    options: dict[str, Any] = {"levels": 2, "memory": 1}
    with ZipStore(place, mode="a") as store, pytest.raises(StoppedError):
        build_pyramid(tessarr.open_group(store, mode="r+"), "0", progress=stop_after(4), **options)
    assert place.read_bytes() == before
    (left,) = [name for name in os.listdir(tmp_path) if name != "a.zip"]
    marked = tessarr.open_array(tmp_path / left / "1", mode="r+")
    marked[:8, :8] = -1  # a piece that is done: were it made again, this would be gone
    build_pyramid(place, "0", **options)
    group = tessarr.open_group(place, mode="r")
    assert (array_of(group["1"])[:8, :8] == -1).all()
    np.testing.assert_array_equal(array_of(group["1"])[8:], reduce(VALUES, (2, 2), "mean")[8:])
    assert os.listdir(tmp_path) == ["a.zip"]


def test_a_run_in_an_archive_that_is_killed_leaves_it_as_it_was(tmp_path: Path) -> None:
    place = archive(tmp_path / "a.zip")
    before = place.read_bytes()
    program = """
        import os, sys
        from tessarr.tools.pyramid import build_pyramid
        seen = []
        def kill(done, total, name):
            seen.append(name)
            if len(seen) == 12:
                os._exit(9)
        build_pyramid(sys.argv[1], "0", levels=2, memory=1, progress=kill)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(place)], check=False)
    assert done.returncode == 9
    assert place.read_bytes() == before
    build_pyramid(place, "0", levels=2, memory=1)
    np.testing.assert_array_equal(tessarr.open_array(place, path="1", mode="r")[...], reduce(VALUES, (2, 2), "mean"))
    assert os.listdir(tmp_path) == ["a.zip"]


def test_levels_in_an_archive_are_replaced_only_when_asked_and_then_whole(tmp_path: Path) -> None:
    place = archive(tmp_path / "a.zip")
    build_pyramid(place, "0", levels=1)
    with pytest.raises(ContainsArrayError):
        build_pyramid(place, "0", levels=1, method="max")
    with tessarr.open_group(place, mode="r+").store as store:
        tessarr.open_array(store, path="0", mode="r+")[...] = 0
    build_pyramid(place, "0", levels=1, method="max", overwrite=True)
    assert (tessarr.open_array(place, path="1", mode="r")[...] == 0).all()
    with ZipStore(place) as store:
        assert not [key for key in store.list() if key.startswith("1/c/")]  # chunks of zeros are not stored


def test_an_array_that_came_into_an_archive_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    place = archive(tmp_path / "a.zip")
    with pytest.raises(StoppedError):
        build_pyramid(place, "0", levels=1, memory=1, progress=stop_after(2))
    with ZipStore(place, mode="a") as store:
        tessarr.open_group(store, mode="r+").create_array("1", data=np.arange(3))
    with pytest.raises(ContainsArrayError):
        build_pyramid(place, "0", levels=1, memory=1)
    assert tessarr.open_array(place, path="1", mode="r")[...].tolist() == [0, 1, 2]


def test_an_archive_in_memory_is_given_levels_too() -> None:
    file = io.BytesIO()
    with ZipStore(file, mode="w") as store:
        group = tessarr.create_group(store)
        group.create_array("a/s0", data=VALUES, chunks=(8, 8))
        build_pyramid(group, "a/s0", levels=1)
        assert group["a/s1"].shape == (20, 20)
    np.testing.assert_array_equal(tessarr.open_array(ZipStore(file), path="a/s1")[...], reduce(VALUES, (2, 2), "mean"))


# -- chunks that differ ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "factor", "expected"),
    [
        ([3, 5, 4, 4], 2, [4, 4]),
        ([8, 8, 8, 8], 2, [8, 8]),
        ([1, 1, 1, 1, 1], 2, [1, 1, 1]),
        ([10, 1, 1], 3, [4]),
        ([7, 20], 4, [7]),
        ([5], 2, [3]),
    ],
)
def test_chunks_of_a_level_end_where_chunks_of_the_array_end(sizes: Any, factor: int, expected: Any) -> None:
    assert lengths(sizes, factor) == expected
    ends = {-(-end // factor) for end in np.cumsum(sizes).tolist()}
    assert set(np.cumsum(lengths(sizes, factor)).tolist()) <= ends
    assert max(lengths(sizes, factor)) <= max(sizes)


@pytest.mark.parametrize("memory", [1, 500, 1 << 20])
@pytest.mark.parametrize("method", ["mean", "gaussian", "nearest"])
@pytest.mark.parametrize("grid", [((13, 7, 20), (40,)), ((3, 5, 32), (1, 39)), (((10, 10, 20)), (25, 15))])
def test_levels_of_an_array_whose_chunks_differ_have_the_values_of_the_whole(
    grid: Any, method: Any, memory: int
) -> None:
    group = tessarr.create_group(MemoryStore())
    group.create_array("0", data=VALUES, chunks=grid, dimension_names=("y", "x"))
    assert array_of(group["0"]).metadata.chunk_grid.chunk_shape is None
    build_pyramid(group, "0", levels=3, method=method, memory=memory, convention="ome-0.5")
    whole = VALUES
    for name in ("1", "2", "3"):
        whole = reduce(whole, (2, 2), method)
        np.testing.assert_array_equal(array_of(group[name])[...], whole)


def test_an_axis_that_keeps_its_length_keeps_its_chunks() -> None:
    group = tessarr.create_group(MemoryStore())
    days = (31, 28, 31)
    group.create_array("0", shape=(90, 64), dtype="f4", chunks=(days, (32, 32)), dimension_names=("time", "x"))
    build_pyramid(group, "0", levels=2)
    assert group["2"].shape == (90, 16)
    axis = array_of(group["2"]).metadata.chunk_grid.axes((90, 16))[0]
    assert [axis.size(index) for index in range(axis.nchunks)] == list(days)


def test_shards_that_differ_in_length_are_divided_by_inner_chunks_in_every_level() -> None:
    group = tessarr.create_group(MemoryStore())
    group.create_array("0", data=VALUES, shards=((8, 12, 20), (40,)), chunks=(4, 4))
    build_pyramid(group, "0", levels=2)
    np.testing.assert_array_equal(array_of(group["1"])[...], reduce(VALUES, (2, 2), "mean"))
    np.testing.assert_array_equal(array_of(group["2"])[...], reduce(reduce(VALUES, (2, 2), "mean"), (2, 2), "mean"))


def test_memory_is_bounded_where_the_first_chunk_is_the_smallest() -> None:
    group = tessarr.create_group(MemoryStore())
    rows = (1, *[256] * 16)
    group.create_array("0", shape=(4097, 512), dtype="u1", chunks=(rows, (512,)), fill_value=1)
    tracemalloc.start()
    build_pyramid(group, "0", levels=1, memory=1 << 18, factors=(2, 2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20, peak  # a piece of 256 KiB becomes 64-bit integers; the array has 2 MiB


# -- values that change ------------------------------------------------------------------------------------------------


class Versionless(ForwardingStore):
    """A store that knows no versions."""

    def version(self, key: str) -> None:
        return None


def places(kind: str, tmp_path: Path) -> Any:
    if kind == "local":
        return tmp_path / "a.zarr"
    if kind == "sqlite":
        return SQLiteStore(tmp_path / "a.sqlite")
    return MemoryStore() if kind == "memory" else Versionless(MemoryStore())


@pytest.mark.parametrize("kind", ["local", "memory", "sqlite", "versionless"])
def test_a_run_over_values_that_have_changed_begins_anew(kind: str, tmp_path: Path) -> None:
    store = places(kind, tmp_path)
    group = tessarr.create_group(store)
    array = group.create_array("0", data=VALUES, chunks=(8, 8))
    with pytest.raises(StoppedError):
        build_pyramid(group, "0", levels=2, memory=1, progress=stop_after(6))
    array[:8, :8] = 1000  # a chunk that was read already, of the same size as before
    build_pyramid(group, "0", levels=2, memory=1)
    now = array[...]
    np.testing.assert_array_equal(array_of(group["1"])[...], reduce(now, (2, 2), "mean"))
    np.testing.assert_array_equal(array_of(group["2"])[...], reduce(reduce(now, (2, 2), "mean"), (2, 2), "mean"))


@pytest.mark.parametrize("kind", ["local", "versionless"])
def test_a_run_over_values_that_are_the_same_goes_on(kind: str, tmp_path: Path) -> None:
    group = tessarr.create_group(places(kind, tmp_path))
    group.create_array("0", data=VALUES, chunks=(8, 8))
    with pytest.raises(StoppedError):
        build_pyramid(group, "0", levels=1, memory=1, progress=stop_after(6))
    assert json.loads(bytes_of(group.store.get(".0.pyramid.partial")))["done"] == {"1": 6}
    array_of(group["1"])[:8, :8] = -1
    build_pyramid(group, "0", levels=1, memory=1)
    assert (array_of(group["1"])[:8, :8] == -1).all()


def test_a_chunk_that_was_removed_is_a_change_too(tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path / "a.zarr")
    group.create_array("0", data=VALUES + 1, chunks=(8, 8))
    with pytest.raises(StoppedError):
        build_pyramid(group, "0", levels=1, memory=1, progress=stop_after(6))
    group.store.delete("0/c/0/0")
    build_pyramid(group, "0", levels=1, memory=1)
    assert (array_of(group["1"])[:4, :4] == 0).all()
