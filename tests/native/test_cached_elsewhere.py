"""Decoded chunks of stores other than local directories are cached, as long as the stored value is the same."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import TessarrError
from tessarr.storage import MemoryStore, ZipStore
from tessarr.types import Buffer, ByteRange

SHAPE = (64, 64, 64)
NOISE = np.random.default_rng(3).integers(0, 4096, SHAPE).astype("u2")
LAYOUTS: list[dict[str, Any]] = [
    {"chunks": (32, 32, 32)},
    {"chunks": (32, 32, 32), "filters": [{"name": "transpose", "configuration": {"order": [2, 0, 1]}}]},
    {"chunks": (16, 16, 16), "shards": (64, 64, 64)},
    {"chunks": (16, 16, 16), "shards": (32, 32, 32)},
]
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    tessarr.clear_chunk_cache()


def made(store: MemoryStore | ZipStore, layout: dict[str, Any]) -> tessarr.Array:
    array = tessarr.create_array(store, shape=SHAPE, dtype="u2", compressors=[ZSTD], **layout)
    array[...] = NOISE
    return array


def hits() -> int:
    return tessarr.chunk_cache_info().hits


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_is_read_from_the_cache_and_never_stale(layout: dict[str, Any]) -> None:
    store = MemoryStore()
    array = made(store, layout)
    expected = NOISE.copy()
    for _ in range(3):
        assert array[1, 2, 3] == expected[1, 2, 3]
        assert np.array_equal(array[5, 3:40], expected[5, 3:40])
    assert hits() > 0
    rng = np.random.default_rng(7)
    for value in range(40):
        at = tuple(int(i) for i in rng.integers(0, 64, 3))
        array[at] = expected[at] = value
        assert array[at] == value
        assert np.array_equal(array[at[0]], expected[at[0]])
    other = tessarr.open_array(store, mode="r+")  # another array object over the same values
    other[1, 2, 3] = 77
    assert array[1, 2, 3] == 77


def test_values_that_are_put_into_the_map_are_seen() -> None:
    mine: dict[str, Any] = {}
    array = made(MemoryStore(mine), LAYOUTS[0])
    assert [int(array[0, 0, 0]) for _ in range(3)] == [int(NOISE[0, 0, 0])] * 3
    mine["c/0/0/0"] = mine["c/1/1/1"]
    assert array[0, 0, 0] == NOISE[32, 32, 32]
    changing = bytearray(mine["c/0/0/1"])
    mine["c/0/0/0"] = changing
    assert [int(array[0, 0, 0]) for _ in range(3)] == [int(NOISE[0, 0, 32])] * 3
    changing[:] = bytes(len(changing))  # the same object with other bytes
    with pytest.raises(TessarrError):
        array[0, 0, 0]
    del mine["c/0/0/0"]
    assert array[0, 0, 0] == 0


def test_a_map_in_the_place_of_an_earlier_one_is_another_place() -> None:
    for number in range(30):
        array = tessarr.create_array(MemoryStore(), shape=SHAPE, chunks=SHAPE, dtype="u2", compressors=[ZSTD])
        array[...] = NOISE + number
        assert [int(array[1, 1, 1]) for _ in range(3)] == [int(NOISE[1, 1, 1]) + number] * 3
        del array
        gc.collect(1)  # not all that other tests have left


def test_a_store_that_reads_in_its_own_way_is_asked_each_time() -> None:
    class Counting(MemoryStore):
        reads = 0

        def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
            self.reads += key.startswith("c/")
            return super().get(key, byte_range)

        def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
            self.reads += key.startswith("c/")
            return super().get_ranges(key, ranges)

    store = Counting()
    array = made(store, LAYOUTS[0])
    before = store.reads
    for _ in range(3):
        assert array[1, 2, 3] == NOISE[1, 2, 3]
    assert store.reads == before + 3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_members_of_an_archive_are_read_from_the_cache_and_never_stale(layout: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with ZipStore(path, mode="w") as store:
        made(store, layout)
    with ZipStore(path, mode="r") as store:
        array = tessarr.open_array(store, mode="r")
        before = hits()
        for _ in range(4):
            assert array[1, 2, 3] == NOISE[1, 2, 3]
            assert np.array_equal(array[5, 3:40], NOISE[5, 3:40])
        is_small = layout.get("shards") == (32, 32, 32)  # read whole, and its checksum compared
        assert (hits() > before) is not is_small
    for value in range(5):  # appended to the archive, whose directory is written anew
        with ZipStore(path, mode="a") as store:
            array = tessarr.open_array(store, mode="r+")
            array[1, 2, 3] = value
            assert [int(array[1, 2, 3]) for _ in range(3)] == [value] * 3
        with ZipStore(path, mode="r") as store:
            array = tessarr.open_array(store, mode="r")
            assert [int(array[1, 2, 3]) for _ in range(3)] == [value] * 3
