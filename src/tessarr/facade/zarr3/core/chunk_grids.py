"""zarr-python's ``zarr.core.chunk_grids``."""

from __future__ import annotations

from collections.abc import Sequence

from tessarr.grids.base import ChunkGrid as OurChunkGrid
from tessarr.grids.guess import guess_chunks as _guess_chunks
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid

RegularChunkGrid = RegularChunkGridMetadata = RegularGrid
RectilinearChunkGrid = RectilinearGrid


class ChunkGrid(OurChunkGrid):
    """Any grid; the class that `RegularChunkGrid` and `RectilinearChunkGrid` are instances of."""

    @staticmethod
    def from_sizes(array_shape: Sequence[int], chunk_sizes: Sequence[int | Sequence[int]]) -> OurChunkGrid:
        """Make the grid of an array of `array_shape` whose axes are cut into chunks of one size, or of a list of sizes.

        >>> ChunkGrid.from_sizes((10, 6), (4, 3))
        RegularGrid((4, 3))
        >>> ChunkGrid.from_sizes((10, 6), ([4, 6], 3)).axes((10, 6))[0].nchunks
        2
        """
        regular = [size for size in chunk_sizes if isinstance(size, int)]
        if len(regular) == len(chunk_sizes):
            return RegularGrid(regular)
        shapes = [size if isinstance(size, int) else list(size) for size in chunk_sizes]
        return RectilinearGrid.from_json({"kind": "inline", "chunk_shapes": shapes}, tuple(array_shape))


ChunkGrid.register(RegularGrid)
ChunkGrid.register(RectilinearGrid)

__all__ = ["ChunkGrid", "RectilinearChunkGrid", "RegularChunkGrid", "RegularChunkGridMetadata", "_guess_chunks"]
