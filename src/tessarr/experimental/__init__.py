"""zarr-python's ``zarr.experimental``; nothing here is experimental in tessarr."""

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(__name__, "cache_store")
