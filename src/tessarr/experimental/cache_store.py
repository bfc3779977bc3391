"""`CacheStore`, under the path that zarr-python documents."""

from tessarr.stores.layers import CacheStore

__all__ = ["CacheStore"]
