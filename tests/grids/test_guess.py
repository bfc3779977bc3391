"""Automatic chunk and shard shapes, and the spellings of ``chunks=``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.grids.guess import guess_chunks, guess_shards, normalize_chunks, parse_nbytes
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid

shapes = st.lists(st.integers(0, 10**6) | st.integers(0, 2**62), max_size=5).map(tuple)


@given(shapes, st.integers(0, 64), st.integers(1, 2**24))
def test_a_guess_keeps_to_its_target(shape: tuple[int, ...], itemsize: int, target: int) -> None:
    chunks = guess_chunks(shape, itemsize, target_nbytes=target)
    assert len(chunks) == len(shape)
    assert all(1 <= chunk <= (length or 2**62) for chunk, length in zip(chunks, shape, strict=True))
    assert prod(chunks) * max(1, itemsize) <= max(target, itemsize, 1)
    for chunk, length in zip(chunks, shape, strict=True):
        count = -(-length // chunk)
        assert length <= count * chunk < length + count or not length, "pieces are uneven"


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=4).map(tuple), st.sampled_from([1, 2, 4, 8]))
def test_a_large_array_gets_chunks_that_are_worth_a_request(shape: tuple[int, ...], itemsize: int) -> None:
    nbytes = prod(guess_chunks(shape, itemsize)) * itemsize
    assert nbytes >= min(prod(shape) * itemsize, 2**20) / 2 ** len(shape)


@given(shapes, st.integers(0, 16), st.data())
def test_shards_are_multiples_of_chunks(shape: tuple[int, ...], itemsize: int, data: st.DataObject) -> None:
    chunks = tuple(data.draw(st.integers(1, 100)) for _ in shape)
    shards = guess_shards(shape, chunks, itemsize)
    for shard, chunk, length in zip(shards, chunks, shape, strict=True):
        assert shard % chunk == 0
        assert chunk <= shard
        assert shard < length + chunk or not length
    assert prod(shards) * max(1, itemsize) <= max(2**30, prod(chunks) * max(1, itemsize))


def test_examples_of_guesses() -> None:
    assert guess_chunks((10_000, 10_000), 8) == (358, 358)
    assert guess_chunks((100,), 4) == (100,)
    assert guess_chunks((1000, 1000, 3), 1) == (500, 500, 3)
    assert guess_chunks((0, 100), 8) == (1310, 100)
    assert guess_chunks((), 8) == ()
    assert guess_chunks((5,), 10**9) == (1,)


def test_shards_of_huge_arrays_grow_to_keep_objects_few() -> None:
    small, huge = guess_shards((2**30,), (2**17,), 8), guess_shards((2**50,), (2**17,), 8)
    assert small[0] * 8 == 2**27
    assert huge[0] * 8 == 2**30


@pytest.mark.parametrize(
    ("chunks", "shape", "expected"),
    [
        (64, (100, 30), (64, 64)),
        (np.int16(64), (100, 30), (64, 64)),
        ((64, 8), (100, 30), (64, 8)),
        ([64, 8], (100, 30), (64, 8)),
        (np.array([64, 8]), (100, 30), (64, 8)),
        ((64, -1), (100, 30), (64, 30)),
        ((None, 8), (100, 30), (100, 8)),
        (-1, (100, 30), (100, 30)),
        (False, (100, 30), (100, 30)),
        (-1, (0, 30), (1, 30)),
        ((), (), ()),
        (5, (), ()),
        ("auto", (100, 30), (100, 30)),
        ("1kB", (100, 30), (10, 10)),
        ((200, 8), (100, 30), (200, 8)),
    ],
)
def test_spellings_of_a_regular_grid(chunks: Any, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    grid = normalize_chunks(chunks, shape, 8)
    assert type(grid) is RegularGrid
    assert grid.chunk_shape == expected
    assert all(type(length) is int for length in grid.chunk_shape)


@pytest.mark.parametrize(
    ("chunks", "spelling"),
    [
        ([[10, 20], 5], [[10, 20], 5]),
        (((10, 20), (5, 5, 5)), [[10, 20], [5, 5, 5]]),
        (([15, 15], -1), [[15, 15], 15]),
        ([[[10, 3]], None], [[[10, 3]], 15]),
        ([np.array([10, 20]), 5], [[10, 20], 5]),
    ],
)
def test_a_list_for_an_axis_means_a_rectilinear_grid(chunks: Any, spelling: Any) -> None:
    grid = normalize_chunks(chunks, (30, 15), 8)
    assert type(grid) is RectilinearGrid
    assert grid.to_json()["configuration"] == {"kind": "inline", "chunk_shapes": spelling}


@pytest.mark.parametrize(
    "chunks",
    [
        True,
        np.True_,
        None,
        (64,),
        (64, 8, 1),
        (0, 8),
        (-2, 8),
        (1.0, 8),
        (True, 8),
        0,
        2.5,
        "big",
        "0B",
        "-1MB",
        {},
        ("8", 8),
        ([10, 10], 5),
        ([0, 30], 5),
    ],
)
def test_what_has_no_clear_meaning_is_refused(chunks: Any) -> None:
    with pytest.raises(ValueError, match="chunk"):
        normalize_chunks(chunks, (30, 15), 8)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("100MB", 10**8), ("1.5 GiB", 3 * 2**29), ("512 B", 512), ("1kib", 1024), ("2 TB", 2 * 10**12)],
)
def test_sizes_are_read(text: str, nbytes: int) -> None:
    assert parse_nbytes(text) == nbytes
