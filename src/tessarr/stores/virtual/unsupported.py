"""Stores of zarr-python that tessarr does not have, by name, so that code which mentions them imports."""

from __future__ import annotations

from tessarr.errors import UnsupportedOperationError
from tessarr.stores.base import Store


class GpuMemoryStore(Store):
    """Not supported: results are NumPy arrays in host memory."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnsupportedOperationError("tessarr has no store in GPU memory", hint="Use MemoryStore, and copy results")


class N5Store(Store):
    """Not supported: N5 is another format, with another layout of chunks."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        hint = "Convert the data to Zarr with software that reads N5"
        raise UnsupportedOperationError(f"tessarr has no {type(self).__name__}; N5 is not Zarr", hint=hint)


class N5FSStore(N5Store):
    """Not supported: see `N5Store`."""
