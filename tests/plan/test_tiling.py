"""Boxes of plans: they tile an array, own whole chunks, and cost what `cost` says."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.errors import BaseZarrError
from tessarr.grids.base import ChunkGrid
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.plan.cost import Sizes, choose_box, chunks_read, longest_chunks, reads_along
from tessarr.plan.tiling import Tiling, tiled
from tessarr.types import Shape


@st.composite
def _grids(draw: st.DrawFn) -> tuple[Shape, ChunkGrid]:
    """A shape of up to three axes, and a regular or rectilinear grid."""
    ndim = draw(st.integers(0, 3))
    if draw(st.booleans()):
        shape = tuple(draw(st.lists(st.integers(0, 12), min_size=ndim, max_size=ndim)))
        return shape, RegularGrid(tuple(draw(st.lists(st.integers(1, 7), min_size=ndim, max_size=ndim))))
    sizes = [draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)) for _ in range(ndim)]
    grid: dict[str, Any] = {"kind": "inline", "chunk_shapes": sizes}
    shape = tuple(map(sum, sizes))
    return shape, RectilinearGrid.from_json(grid, shape)


@given(_grids(), st.data())
def test_boxes_tile_an_array_and_no_chunk_has_two_owners(
    given_grid: tuple[Shape, ChunkGrid], data: st.DataObject
) -> None:
    shape, grid = given_grid
    axes = grid.axes(shape)
    lengths = [data.draw(st.integers(1, 14)) for _ in shape]
    tiling = tiled(axes, lengths)
    covered = np.zeros(shape, int)
    owners: Counter[tuple[int, ...]] = Counter()
    for number in range(tiling.count):
        box = tiling.box(number)
        covered[box] += 1
        touched = [
            range(axis.find(part.start), axis.find(part.stop - 1) + 1) for axis, part in zip(axes, box, strict=True)
        ]
        owners.update(product(*touched))
    assert (covered == 1).all()
    assert all(count == 1 for count in owners.values())
    assert len(owners) == (prod(axis.nchunks for axis in axes) if tiling.count else 0)
    assert Tiling.from_json(shape, json.loads(json.dumps(tiling.to_json()))) == tiling


def test_a_box_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError, match="box 2 of 2"):
        Tiling((4,), (2,)).box(2)


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 12))
def test_reads_along_an_axis_are_those_of_every_box(length: int, cut: int, read: int) -> None:
    expected = sum((min(length, start + cut) - 1) // read - start // read + 1 for start in range(0, length, cut))
    assert reads_along(length, cut, read) == expected
    ends = (*range(cut, length, cut), length)
    assert reads_along(length, ends, read) == (expected if length else 0)


@given(_grids(), st.data())
def test_a_chosen_box_fits_in_memory(given_grid: tuple[Shape, ChunkGrid], data: st.DataObject) -> None:
    shape, grid = given_grid
    read = tuple(data.draw(st.integers(1, 9)) for _ in shape)
    axes = grid.axes(shape)
    sizes = Sizes(axes, read, longest_chunks(axes), 8, data.draw(st.integers(1, 4)))
    memory = data.draw(st.integers(1, 20_000))
    least = sizes.peak(longest_chunks(sizes.axes))
    if least > memory:
        with pytest.raises(BaseZarrError, match=f"got {least} bytes"):
            choose_box(sizes, memory)
        return
    tiling = choose_box(sizes, memory)
    for number in range(tiling.count):
        assert sizes.peak([part.stop - part.start for part in tiling.box(number)]) <= max(memory, least)
    assert chunks_read(tiling, read) >= prod(-(-n // size) for n, size in zip(shape, read, strict=True))


def test_boxes_are_about_equal_where_that_reads_no_more() -> None:
    axes = tuple(RegularGrid((30, 6)).axes((30, 300)))
    whole = Sizes(axes, (30, 300), (30, 6), 8, threads=0)
    assert choose_box(whole, 30 * 210 * 8).cuts == (30, 150)  # not 210 and 90
    unequal = Sizes(axes, (30, 210), (30, 6), 8, threads=0)  # a box ends where a chunk of the source does
    assert choose_box(unequal, 30 * 210 * 8).cuts == (30, 210)


def test_more_memory_never_reads_more() -> None:
    grid = RegularGrid((9, 100))
    sizes = Sizes(tuple(grid.axes((100, 100))), (100, 7), (9, 100), 8, 1)
    found = [chunks_read(choose_box(sizes, memory), (100, 7)) for memory in (33_000, 60_000, 120_000, 10**6)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == 15
