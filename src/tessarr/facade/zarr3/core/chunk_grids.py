"""zarr-python's ``zarr.core.chunk_grids``."""

from __future__ import annotations

from tessarr.grids.base import ChunkGrid
from tessarr.grids.guess import guess_chunks as _guess_chunks
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid

RegularChunkGrid = RegularChunkGridMetadata = RegularGrid
RectilinearChunkGrid = RectilinearGrid

__all__ = ["ChunkGrid", "RectilinearChunkGrid", "RegularChunkGrid", "RegularChunkGridMetadata", "_guess_chunks"]
