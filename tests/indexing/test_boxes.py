"""The one region splitter: boxes tile an array, hold whole chunks, and stay within the bytes allowed."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
import pytest

from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.boxes import Box, box_shape, boxes_of_chunks, chunk_box, tiles

GRIDS = [
    ((10, 7), RegularGrid((3, 2))),
    ((0, 7), RegularGrid((3, 2))),
    ((), RegularGrid(())),
    ((10, 7), RectilinearGrid(((1, 4, 5), (7,)))),
]


def counted(shape: tuple[int, ...], boxes: list[Box]) -> np.ndarray:
    seen = np.zeros(shape, int)
    for box in boxes:
        seen[box] += 1
    return seen


@pytest.mark.parametrize(("shape", "grid"), GRIDS, ids=repr)
@pytest.mark.parametrize("nbytes", [1, 48, 10_000])
@pytest.mark.parametrize("read", [None, (2, 7)])
def test_boxes_tile_the_array_and_stay_small(
    shape: tuple[int, ...], grid: RegularGrid, nbytes: int, read: tuple[int, ...] | None
) -> None:
    axes = grid.axes(shape)
    boxes = list(boxes_of_chunks(axes, 4, nbytes, read if len(shape) == 2 else None))
    assert (counted(shape, boxes) == 1).all()
    chunks = [chunk_box(axes, coords) for coords in np.ndindex(*(axis.nchunks for axis in axes))]
    for box in boxes:
        within = [c for c in chunks if all(p.start < b.stop and b.start < p.stop for p, b in zip(c, box, strict=True))]
        whole = all(b.start <= p.start and p.stop <= b.stop for c in within for p, b in zip(c, box, strict=True))
        assert whole
        assert len(within) == 1 or 4 * prod(b.stop - b.start for b in box) <= nbytes


def test_tiles_of_an_array_without_elements_are_none() -> None:
    assert list(tiles((0, 3), (0, 2))) == []
    for shape in ((0, 6), (6, 0)):
        assert list(boxes_of_chunks(RegularGrid((2, 2)).axes(shape), 1, 100)) == []
    assert list(boxes_of_chunks(RectilinearGrid((2, (1, 5))).axes((0, 6)), 1, 100)) == []


@pytest.mark.parametrize(("shape", "grid"), GRIDS, ids=repr)
def test_the_boxes_of_all_chunks_tile_the_array(shape: tuple[int, ...], grid: RegularGrid) -> None:
    axes = grid.axes(shape)
    boxes = [chunk_box(axes, coords) for coords in np.ndindex(*(axis.nchunks for axis in axes))]
    assert (counted(shape, boxes) == 1).all()


@pytest.mark.parametrize(
    ("shape", "write", "read", "nbytes", "box"),
    [
        ((100, 100), (10, 10), (100, 10), 2000, (100, 20)),  # whole chunks of the source first, then the last axis
        ((100, 100), (10, 10), (100, 10), 999, (10, 90)),  # those do not fit
        ((100, 100), (10, 30), (100, 20), 6000, (100, 60)),  # a multiple of both
        ((100, 100), (10, 30), (1, 80), 2000, (20, 120)),  # which ends beyond the array
        ((4, 4), (1, 1), (1, 2), 4, (1, 4)),  # the source has chunks of one row
        ((100,), (1,), None, 10, (10,)),
        ((100,), (1,), None, 0, (1,)),
        ((100, 100), (10, 100), None, 10, (10, 100)),
        ((0, 5), (1, 2), (5, 5), 100, (1, 2)),
        ((5, 5), (0, 2), None, 2, (1, 2)),
    ],
)
def test_a_box_holds_chunks_of_the_source_then_more_of_the_last_axes(
    shape: tuple[int, ...], write: tuple[int, ...], read: tuple[int, ...] | None, nbytes: int, box: tuple[int, ...]
) -> None:
    assert box_shape(shape, write, read, 1, nbytes) == box


def test_boxes_of_arrays_with_chunks_of_one_shape_have_one_shape() -> None:
    axes = RegularGrid((10, 10)).axes((100, 100))
    assert list(boxes_of_chunks(axes, 1, 2000, (100, 10))) == list(tiles((100, 100), (100, 20)))


def test_chunks_of_several_lengths_are_taken_together_up_to_the_limit() -> None:
    axes = RectilinearGrid(((1, 2, 3, 4), (5,))).axes((10, 5))
    for nbytes, rows in ((30, (0, 6, 10)), (29, (0, 3, 6, 10)), (35, (0, 6, 10)), (50, (0, 10)), (1, (0, 1, 3, 6, 10))):
        found = [box[0] for box in boxes_of_chunks(axes, 1, nbytes)]
        assert found == [slice(start, stop) for start, stop in pairwise(rows)], nbytes


@pytest.mark.parametrize(
    ("edges", "shape", "nbytes", "rows", "columns"),
    [
        (((2, 2, 2, 2), (5,)), (8, 5), 20, (0, 4, 8), (0, 5)),  # all of two chunks
        (((1, 2, 3, 4), 5), (10, 20), 80, (0, 3, 6, 10), (0, 20)),  # as many columns as fit beside the longest rows
        (((1, 2, 3, 4), 5), (10, 20), 1, (0, 1, 3, 6, 10), (0, 5, 10, 15, 20)),
        (((1, 2, 3, 4), 50), (10, 20), 120, (0, 6, 10), (0, 20)),  # a chunk that ends beyond the array
        (((5,), (1, 2, 3, 4)), (5, 10), 30, (0, 5), (0, 6, 10)),
    ],
)
def test_chunks_of_several_lengths_are_taken_together_along_each_axis(
    edges: tuple[Any, ...], shape: tuple[int, ...], nbytes: int, rows: tuple[int, ...], columns: tuple[int, ...]
) -> None:
    found = list(boxes_of_chunks(RectilinearGrid(edges).axes(shape), 1, nbytes))
    expected = [[slice(start, stop) for start, stop in pairwise(cuts)] for cuts in (rows, columns)]
    assert found == list(product(*expected))


def test_an_axis_more_or_less_is_an_error() -> None:
    axes = RegularGrid((2, 2)).axes((4, 4))
    for wrong in ((0,), (0, 0, 0)):
        with pytest.raises(ValueError, match="zip"):
            chunk_box(axes, wrong)
        with pytest.raises(ValueError, match="zip"):
            list(tiles((4, 4), tuple(2 for _ in wrong)))
    with pytest.raises(ValueError, match="zip"):
        box_shape((4, 4), (2,), None, 1, 4)
