"""zarr-python's ``zarr.core.buffer``."""

from tessarr.buffer import default_buffer_prototype
from tessarr.buffer.cpu import Buffer, BufferPrototype, NDBuffer, numpy_buffer_prototype

__all__ = ["Buffer", "BufferPrototype", "NDBuffer", "default_buffer_prototype", "numpy_buffer_prototype"]
