"""`zarr.experimental.ChunkGrid` of zarr-python 3.4: the grid of one array, with its shape."""

from __future__ import annotations

import pytest

import tessarr
from tessarr.facade.zarr3.core.chunk_grids import RectilinearChunkGrid, RegularChunkGrid
from tessarr.facade.zarr3.experimental import ChunkGrid, ChunkSpec

REGULAR = ChunkGrid.from_sizes((10, 6), (4, 3))
VARIED = ChunkGrid.from_sizes((10, 6), ([4, 8], 4))
"""The second chunk of the first axis extends beyond the edge, and so does that of the second."""


def test_a_grid_is_a_sequence_of_chunks() -> None:
    assert (REGULAR.ndim, REGULAR.grid_shape, REGULAR.get_nchunks()) == (2, (3, 2), 6)
    assert REGULAR[2, 1] == ChunkSpec((slice(8, 10, 1), slice(3, 6, 1)), (4, 3))
    assert [spec.shape for spec in REGULAR] == [(4, 3), (4, 3), (4, 3), (4, 3), (2, 3), (2, 3)]
    assert [spec.is_boundary for spec in REGULAR] == [False] * 4 + [True] * 2
    assert VARIED[1, 1] == ChunkSpec((slice(4, 10, 1), slice(4, 6, 1)), (8, 4))
    assert VARIED[0, -1] is None
    assert VARIED[2, 0] is None
    assert ChunkGrid.from_sizes(5, (2,))[2] == ChunkSpec((slice(4, 5, 1),), (2,))
    assert [*ChunkGrid.from_sizes((), ())] == [ChunkSpec((), ())]
    with pytest.raises(ValueError, match="2-d chunk grid"):
        REGULAR[1]


def test_a_grid_knows_the_sizes_of_its_chunks() -> None:
    assert REGULAR.is_regular
    assert REGULAR.chunk_shape == (4, 3)
    assert REGULAR.chunk_sizes == ((4, 4, 2), (3, 3))
    assert not VARIED.is_regular
    assert VARIED.chunk_sizes == ((4, 6), (4, 2))
    with pytest.raises(ValueError, match="regular chunk grids"):
        _ = VARIED.chunk_shape
    assert repr(REGULAR) == "ChunkGrid(chunk_sizes=(4, 3), array_shape=(10, 6))"
    assert repr(VARIED) == "ChunkGrid(chunk_sizes=((4, 8), 4), array_shape=(10, 6))"


def test_the_chunks_of_a_part_of_the_grid() -> None:
    assert [*REGULAR.all_chunk_coords(origin=(1, 1))] == [(1, 1), (2, 1)]
    assert [*REGULAR.all_chunk_coords(selection_shape=(1, 2))] == [(0, 0), (0, 1)]
    assert [*VARIED.iter_chunk_regions(origin=(1, 0), selection_shape=(1, 1))] == [(slice(4, 10, 1), slice(0, 4, 1))]
    with pytest.raises(IndexError, match=r"selection shape \(3\) for origin \(1\)"):
        REGULAR.all_chunk_coords(origin=(1, 0), selection_shape=(3, 1))


def test_a_grid_of_another_shape() -> None:
    assert REGULAR.update_shape((5, 9)).grid_shape == (2, 3)
    assert VARIED.update_shape((20, 6)).chunk_sizes == ((4, 8, 8), (4, 2))
    assert VARIED.update_shape((3, 6)).chunk_sizes == ((3,), (4, 2))
    with pytest.raises(ValueError, match="new_shape has 1 dimensions"):
        VARIED.update_shape((3,))


@pytest.mark.parametrize("sizes", [(4,), (4, 3, 1), ([], 3), ([4, 5], 3), (0, 3)])
def test_sizes_that_do_not_fit_are_refused(sizes: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"dimensions|empty|cover|positive"):
        ChunkGrid.from_sizes((10, 6), sizes)  # type: ignore[arg-type]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_grid_of_an_array(zarr_format: int) -> None:
    array = tessarr.create_array({}, shape=(10, 6), chunks=(4, 3), dtype="i1", zarr_format=zarr_format)
    assert [*ChunkGrid.from_metadata(array.metadata)] == [*REGULAR]


def test_grids_of_metadata_are_instances_too() -> None:
    """In zarr-python 3.1 they are subclasses of a class of this name."""
    assert isinstance(RegularChunkGrid((4,)), ChunkGrid)
    assert isinstance(RectilinearChunkGrid([[4]]), ChunkGrid)
    assert not isinstance("regular", ChunkGrid)
    array = tessarr.create_array({}, shape=(10,), chunks=[[4, 6]], dtype="i1")
    assert ChunkGrid.from_metadata(array.metadata).chunk_sizes == ((4, 6),)

    class Other:
        shape = (1,)
        zarr_format = 3
        chunk_grid = "regular"

    with pytest.raises(TypeError, match="Unknown chunk grid"):
        ChunkGrid.from_metadata(Other())  # type: ignore[arg-type]
