"""Stores of zarr-python that tessarr does not have, by name, so that code which mentions them imports."""

from __future__ import annotations

from tessarr.errors import UnsupportedOperationError
from tessarr.stores.base import Store


class GpuMemoryStore(Store):
    """Not supported: results are NumPy arrays in host memory."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnsupportedOperationError("tessarr has no store in GPU memory", hint="Use MemoryStore, and copy results")
