"""`CacheStore`, under the path that zarr-python documents."""

from tessarr.stores.wrappers.cache import CacheStore

__all__ = ["CacheStore"]
