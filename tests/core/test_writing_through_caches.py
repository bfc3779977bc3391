"""Shapes that change through a cache, which has the documents and chunks of before another client's change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tessarr
from tessarr.errors import ConflictError
from tessarr.storage import CacheStore, LocalStore, MemoryStore, PrefixStore, SQLiteStore, Store
from tessarr.types import ZarrFormat

Make = Callable[[], Store]


@pytest.fixture(params=["local", "memory", "sqlite", "prefix"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a function that makes a store of one place."""
    memory = MemoryStore()
    made: dict[str, Make] = {
        "local": lambda: LocalStore(tmp_path / "a"),
        "memory": lambda: memory,
        "sqlite": lambda: SQLiteStore(tmp_path / "a.sqlite"),
        "prefix": lambda: PrefixStore(LocalStore(tmp_path), "a"),
    }
    return made[request.param]


def _cached(make: Make, zarr_format: ZarrFormat = 3) -> tessarr.Array:
    """Create an array, and open it through a cache that has read everything."""
    tessarr.create_array(make(), data=np.arange(1, 7, dtype="i4"), chunks=(4,), zarr_format=zarr_format)
    array = tessarr.open_array(CacheStore(make()), mode="r+")
    assert array[:].tolist() == [1, 2, 3, 4, 5, 6]
    return array


def _others(make: Make) -> tessarr.Array:
    return tessarr.open_array(make(), mode="r+")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_append_through_a_cache_is_after_the_rows_of_others(make: Make, zarr_format: ZarrFormat) -> None:
    array = _cached(make, zarr_format=zarr_format)
    _others(make).append([71, 72, 73])
    assert array.append([8, 8, 8]) == (12,)
    expected = [1, 2, 3, 4, 5, 6, 71, 72, 73, 8, 8, 8]
    assert _others(make)[:].tolist() == expected
    assert array[:].tolist() == expected


def test_a_resize_through_a_cache_is_refused_until_the_stored_shape_is_read(make: Make) -> None:
    array = _cached(make)
    _others(make).append([71, 72, 73])
    for clear in (True, False):
        with pytest.raises(ConflictError):
            array.resize((3,), clear=clear)
    assert _others(make)[:].tolist() == [1, 2, 3, 4, 5, 6, 71, 72, 73]
    array.refresh()
    array.resize((8,))
    assert array[:].tolist() == [1, 2, 3, 4, 5, 6, 71, 72]


def test_a_follower_through_a_cache_hands_out_the_rows_of_others(make: Make) -> None:
    array = _cached(make)
    follower = array.follow(timeout=0)
    assert [row for _, rows in follower for row in rows.tolist()] == [1, 2, 3, 4, 5, 6]
    _others(make).append([71, 72, 73])
    assert [row for _, rows in follower for row in rows.tolist()] == [71, 72, 73]


def test_chunks_without_new_rows_stay_cached() -> None:
    store = MemoryStore()
    array = _cached(lambda: store)
    _others(lambda: store).append([71, 72, 73])
    next(array.follow(timeout=0))
    store.set("c/0", b"\0" * 16)
    assert array[:4].tolist() == [1, 2, 3, 4]


def test_a_change_through_a_cache_enters_consolidated_metadata_that_others_wrote(make: Make) -> None:
    group = tessarr.create_group(make())
    group.create_array("a", shape=(2,), dtype="i4")
    mine = tessarr.open_group(CacheStore(make()), mode="r+")["a"]
    assert isinstance(mine, tessarr.Array)
    mine.attrs["x"] = 1
    tessarr.consolidate_metadata(make())
    mine.append([1])
    consolidated = tessarr.open_group(make(), mode="r", use_consolidated=True)["a"]
    assert isinstance(consolidated, tessarr.Array)
    assert consolidated.shape == (3,)
