"""zarr-python's ``zarr.core.buffer``."""

from tessarr.facade.zarr3.buffer.cpu import numpy_buffer_prototype
from tessarr.facade.zarr3.core.buffer import core, cpu
from tessarr.facade.zarr3.core.buffer.core import (
    ArrayLike,
    Buffer,
    BufferPrototype,
    NDArrayLike,
    NDArrayLikeOrScalar,
    NDBuffer,
    default_buffer_prototype,
)

__all__ = [
    "ArrayLike",
    "Buffer",
    "BufferPrototype",
    "NDArrayLike",
    "NDArrayLikeOrScalar",
    "NDBuffer",
    "core",
    "cpu",
    "default_buffer_prototype",
    "numpy_buffer_prototype",
]
