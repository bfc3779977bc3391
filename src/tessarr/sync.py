"""zarr-python 2's ``zarr.sync``: locks that code may ask for by name (tessarr locks by itself)."""

from tessarr.core.zarr2 import ProcessSynchronizer, ThreadSynchronizer

__all__ = ["ProcessSynchronizer", "ThreadSynchronizer"]
