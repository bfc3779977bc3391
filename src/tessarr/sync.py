"""zarr-python 2's ``zarr.sync``: locks that code may ask for by name (tessarr locks by itself)."""

from tessarr.core.oldnames import ProcessSynchronizer, ThreadSynchronizer

__all__ = ["ProcessSynchronizer", "ThreadSynchronizer"]
