"""zarr-python's indexers, as cubed and tifffile use them, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import NegativeStepError
from tessarr.facade.zarr3.core.chunk_grids import ChunkGrid, RectilinearChunkGrid, RegularChunkGrid
from tessarr.facade.zarr3.core.indexing import BasicIndexer, CoordinateIndexer, MaskIndexer, OrthogonalIndexer

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
