"""zarr-python's ``zarr.abc.buffer``. tessarr's stores give and take plain buffers: bytes, memoryviews, arrays."""

from tessarr.types import Buffer

__all__ = ["Buffer"]
