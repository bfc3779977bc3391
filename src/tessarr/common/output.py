"""The memory that a caller gives for the elements of a read (``out=``), as a NumPy array over it.

| given | elements are read |
|---|---|
| a NumPy array, a buffer of zarr-python | into it |
| a writable object with the buffer protocol: ``bytearray``, ``memoryview``, ``mmap``, ``array.array`` | into it |
| a tensor or array with DLPack in memory that the CPU writes: also pinned and managed memory of CUDA and ROCm | into it |
| a tensor of PyTorch or array of CuPy on a device | into pinned memory, and then to the device, by one copy |
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np

from tessarr.types import AnyArray, AnyDType, Shape

if TYPE_CHECKING:
    from typing_extensions import Buffer

_DEVICES = {2: "CUDA", 10: "ROCm"}
"""DLPack's numbers of devices whose memory the CPU does not write.

Source: DLPack 1.0, ``DLDeviceType``."""
_BYTES = frozenset(("B", "b", "c"))
"""Formats of buffers of bytes, which may hold elements of any type."""


class _OnDevice(Protocol):
    """A tensor of PyTorch, or an array of CuPy."""

    shape: Shape
    dtype: object

    def copy_(self, host: object) -> object: ...

    def set(self, host: object) -> object: ...


class Output(NamedTuple):
    """Where elements are read to."""

    array: AnyArray
    deliver: Callable[[], object] | None = None
    """Copies `array` to the device; ``None``: the elements are in place."""


def output_of(out: object, shape: Shape, dtype: AnyDType) -> Output:
    """Return the array over the memory of `out`; one of bytes, or of one axis, is seen in `shape` and `dtype`.

    Raises `TypeError` for an object without such memory, `ValueError` for read-only memory.

    >>> memory = bytearray(8)
    >>> output_of(memory, (2, 2), np.dtype("<i2")).array[...] = [[1, 2], [3, 4]]
    >>> memory.hex()
    '0100020003000400'
    """
    of_buffer = getattr(out, "as_ndarray_like", None)
    array = out if of_buffer is None else of_buffer()
    if isinstance(array, np.ndarray):
        return Output(array)
    try:
        memory = memoryview(cast("Buffer", array))
    except TypeError:
        return _of_tensor(array)
    found = np.asarray(memory)
    if found.dtype != dtype or found.shape != shape:
        is_bytes = memory.format in _BYTES or found.dtype == dtype
        if is_bytes and not dtype.hasobject and memory.c_contiguous and memory.nbytes == prod(shape) * dtype.itemsize:
            found = np.frombuffer(memory, dtype).reshape(shape)
    return Output(_writable(found, out))


def _of_tensor(out: object) -> Output:
    """Return the array over the memory of a tensor, or over pinned memory beside it."""
    device = getattr(out, "__dlpack_device__", None)
    if device is None:
        raise TypeError(f"out must be a NumPy array, a writable buffer, or support DLPack; got {type(out).__name__}")
    kind = int(device()[0])
    if kind in _DEVICES:
        return _staged(cast("_OnDevice", out), _DEVICES[kind])
    from_dlpack = cast("Callable[[object], AnyArray]", np.from_dlpack)
    array = from_dlpack(out)
    if not array.flags.writeable:  # an older DLPack does not say that memory is writable
        other = np.asarray(out)
        if other.ctypes.data == array.ctypes.data and other.strides == array.strides:
            array = other
    return Output(_writable(array, out))


def _staged(out: _OnDevice, device: str) -> Output:
    """Allocate pinned memory by the library of `out`, which is loaded, and copy from there."""
    library = type(out).__module__.partition(".")[0]
    if library == "torch":
        torch = sys.modules["torch"]
        host = torch.empty(tuple(out.shape), dtype=out.dtype, pin_memory=True)
        return Output(host.numpy(), lambda: out.copy_(host))
    if library == "cupy":
        import importlib

        pinned = importlib.import_module("cupyx").empty_pinned(out.shape, out.dtype)
        return Output(pinned, lambda: out.set(pinned))
    raise TypeError(f"out is memory of a {device} device of {library}; known are tensors of torch and arrays of cupy")


def _writable(array: AnyArray, out: object) -> AnyArray:
    if not array.flags.writeable:
        raise ValueError(f"out is read-only memory: a {type(out).__name__}")
    return array


def too_large(shape: Shape, dtype: AnyDType) -> MemoryError:
    """Return the error of a read into more bytes than there are addresses, of which NumPy says `ValueError`."""
    return MemoryError(f"no memory holds an array with shape {shape} and data type {dtype}; select less of it")
