"""zarr-python's ``zarr.experimental``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tessarr.facade.lazy import submodules

if TYPE_CHECKING:
    from tessarr.facade.zarr3.core.chunk_grids import ChunkGrid as ChunkGrid
    from tessarr.facade.zarr3.core.chunk_grids import ChunkSpec as ChunkSpec

_GRIDS = "tessarr.facade.zarr3.core.chunk_grids"
__all__ = ["ChunkGrid", "ChunkSpec"]
__getattr__, __dir__ = submodules(__name__, "cache_store", {"ChunkGrid": _GRIDS, "ChunkSpec": _GRIDS})
