"""zarr-python's indexers, as cubed and tifffile use them, against NumPy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import NegativeStepError
from tessarr.facade.zarr3.buffer.cpu import NDBuffer
from tessarr.facade.zarr3.core.chunk_grids import ChunkGrid, RectilinearChunkGrid, RegularChunkGrid
from tessarr.facade.zarr3.core.indexing import BasicIndexer, CoordinateIndexer, Indexer, MaskIndexer, OrthogonalIndexer

VALUES = np.arange(7 * 6 * 5).reshape(7, 6, 5)
GRIDS = {
    "regular": ChunkGrid.from_sizes(VALUES.shape, (3, 6, 2)),
    "rectilinear": ChunkGrid.from_sizes(VALUES.shape, ([3, 4], 6, [1, 2, 2])),
}


def gathered(indexer: Any, grid: Any) -> Any:
    """What the indexer selects of `VALUES`, put together from chunks as zarr-python does it."""
    axes = grid.axes(VALUES.shape)
    result = np.full(indexer.shape, -1)
    seen = []
    for coords, within, out, complete in indexer:
        box = tuple(
            slice(axis.start(at), axis.start(at) + axis.size(at)) for axis, at in zip(axes, coords, strict=True)
        )
        chunk = VALUES[box]
        taken = chunk[within]
        if indexer.drop_axes:
            taken = taken.squeeze(axis=indexer.drop_axes)
        result[out] = taken
        assert complete <= (taken.size == chunk.size)
        seen.append(coords)
    assert seen == sorted(set(seen))
    return result


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize(
    "selection",
    [
        (slice(None), slice(None), slice(None)),
        (slice(1, 6, 2), 3, ...),
        (2, -1, 4),
        5,
        (..., slice(1, 4)),
        (slice(3, 3), slice(None), slice(None)),
    ],
)
def test_integers_and_slices_select_as_in_numpy(selection: Any, grid: Any) -> None:
    for kind in (BasicIndexer, OrthogonalIndexer):
        indexer = kind(selection, VALUES.shape, grid)
        assert indexer.shape == VALUES[selection].shape
        np.testing.assert_array_equal(gathered(indexer, grid), VALUES[selection])


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize(
    "selection",
    [
        ([0, 6, 3], slice(None), slice(1, 5)),
        (slice(None), [5, 0], [4, 4, 1]),
        (2, [5, 0], [4, 1]),
        (np.arange(7) % 2 == 0, slice(2, 4), [0]),
    ],
)
def test_index_arrays_select_an_outer_product(selection: Any, grid: Any) -> None:
    indexer = OrthogonalIndexer(selection, VALUES.shape, grid)
    picks = [
        np.atleast_1d(np.arange(length)[np.array(item) if isinstance(item, list) else item])
        for item, length in zip(selection, VALUES.shape, strict=True)
    ]
    expected = VALUES[np.ix_(*picks)]
    expected = expected.squeeze(axis=tuple(i for i, item in enumerate(selection) if isinstance(item, int)))
    np.testing.assert_array_equal(gathered(indexer, grid), expected)


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_points_and_masks_select_as_in_numpy(grid: Any) -> None:
    points = ([0, 6, 3, 0], [5, 0, 2, 5], [4, 4, 1, 0])
    np.testing.assert_array_equal(
        gathered(CoordinateIndexer(points, VALUES.shape, grid), grid), VALUES[np.array(points[0]), points[1], points[2]]
    )
    mask = VALUES % 11 == 3
    np.testing.assert_array_equal(gathered(MaskIndexer(mask, VALUES.shape, grid), grid), VALUES[mask])


def test_what_zarr_python_refuses_is_refused() -> None:
    with pytest.raises(IndexError):
        BasicIndexer(([0, 1], 0, 0), VALUES.shape, GRIDS["regular"])
    with pytest.raises(NegativeStepError):
        OrthogonalIndexer(slice(None, None, -1), VALUES.shape, GRIDS["regular"])


def test_the_class_of_grids_is_that_of_both_kinds() -> None:
    assert isinstance(GRIDS["regular"], ChunkGrid)
    assert isinstance(GRIDS["rectilinear"], ChunkGrid)
    regular = tessarr.create_array({}, shape=(7, 6), chunks=(3, 6), dtype="i1").metadata.chunk_grid
    varied = tessarr.create_array({}, shape=(7, 6), chunks=([3, 4], 6), dtype="i1").metadata.chunk_grid
    assert isinstance(regular, RegularChunkGrid)
    assert isinstance(regular, ChunkGrid)
    assert isinstance(varied, RectilinearChunkGrid)
    assert isinstance(varied, ChunkGrid)


class Together:
    """Several selections of rows as one, as annbatch makes it."""

    def __init__(self, indexers: list[Any]) -> None:
        self.shape = (sum(indexer.shape[0] for indexer in indexers), *indexers[0].shape[1:])
        self.drop_axes = indexers[0].drop_axes
        self.indexers = indexers

    def __iter__(self) -> Iterator[Any]:
        begin = 0
        for indexer in self.indexers:
            for part in indexer:
                first, *others = part[2]
                end = begin + first.stop - first.start
                yield type(part)(part[0], part[1], (slice(begin, end), *others), part[3])
                begin = end


@pytest.mark.parametrize("chunks", [(3, 6, 5), ([3, 4], 6, [5])], ids=["regular", "rectilinear"])
def test_an_array_is_read_by_an_indexer_of_another_package(chunks: Any) -> None:
    array = tessarr.create_array({}, data=VALUES, chunks=chunks)
    rows: Any = Together(
        [BasicIndexer((rows, ...), array.shape, array._chunk_grid) for rows in (np.s_[1:2], np.s_[2:7])]
    )
    assert isinstance(rows, Indexer)
    np.testing.assert_array_equal(asyncio.run(array._async_array._get_selection(rows)), VALUES[1:7])
    out: Any = np.zeros((6, 6, 5), VALUES.dtype)
    buffer: Any = NDBuffer(out)
    asyncio.run(array._async_array._get_selection(rows, prototype=None, out=buffer))
    np.testing.assert_array_equal(out, VALUES[1:7])
    outer: Any = OrthogonalIndexer(([0, 6, 3], 2, slice(1, 5)), array.shape, array.async_array._chunk_grid)
    np.testing.assert_array_equal(asyncio.run(array.async_array._get_selection(outer)), VALUES[[0, 6, 3], 2, 1:5])
    with pytest.raises(ValueError, match="out has shape"):
        asyncio.run(array.async_array._get_selection(outer, out=buffer))
