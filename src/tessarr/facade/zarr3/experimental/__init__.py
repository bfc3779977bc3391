"""zarr-python's ``zarr.experimental``."""

from __future__ import annotations

from tessarr.facade.lazy import submodules

__getattr__ = submodules(__name__, "cache_store")
