"""The one region splitter: boxes tile an array, hold whole chunks, and stay within the bytes allowed."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.boxes import Box, boxes_of_chunks, chunk_box, tiles

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


@pytest.mark.parametrize(("shape", "grid"), GRIDS, ids=repr)
def test_the_boxes_of_all_chunks_tile_the_array(shape: tuple[int, ...], grid: RegularGrid) -> None:
    axes = grid.axes(shape)
    boxes = [chunk_box(axes, coords) for coords in np.ndindex(*(axis.nchunks for axis in axes))]
    assert (counted(shape, boxes) == 1).all()
