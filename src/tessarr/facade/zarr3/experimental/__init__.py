"""zarr-python's ``zarr.experimental``."""

from __future__ import annotations

from tessarr.facade.lazy import submodules

_GRIDS = "tessarr.facade.zarr3.core.chunk_grids"
__all__ = ["ChunkGrid", "ChunkSpec"]
__getattr__ = submodules(__name__, "cache_store", {"ChunkGrid": _GRIDS, "ChunkSpec": _GRIDS})
