"""zarr-python's ``zarr.buffer.cpu``: the buffers that its codecs and stores exchange, over NumPy arrays.

tessarr itself passes plain Python buffers and NumPy arrays. These classes are for codecs and stores that were written for
zarr-python (`tessarr.abc.codec`, `tessarr.abc.store`); where tessarr's own functions take a ``prototype`` it has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tessarr.types import AnyArray, AnyDType


class Buffer:
    """Hold a sequence of bytes."""

    def __init__(self, array_like: object) -> None:
        """Wrap `array_like`, which is 1-d, of one byte per element; its memory is shared."""
        data = np.asarray(array_like)
        if data.ndim != 1 or data.dtype.itemsize != 1:
            raise ValueError(f"a buffer is a 1-d array of bytes; got {data.ndim} dimensions of {data.dtype}")
        self._data = data

    @classmethod
    def create_zero_length(cls) -> Self:
        """Make a buffer without bytes."""
        return cls(np.empty(0, "u1"))

    @classmethod
    def from_array_like(cls, array_like: object) -> Self:
        """Make a buffer over the memory of a 1-d array of bytes."""
        return cls(array_like)

    @classmethod
    def from_buffer(cls, buffer: Buffer) -> Self:
        """Make a buffer over the memory of another buffer."""
        return cls(buffer.as_numpy_array())

    @classmethod
    def from_bytes(cls, bytes_like: Any) -> Self:
        """Make a buffer over the memory of bytes, or of any object that exports bytes."""
        return cls(np.frombuffer(bytes_like, "u1"))

    def as_array_like(self) -> AnyArray:
        """Return the bytes as an array; shares memory."""
        return self._data

    def as_numpy_array(self) -> AnyArray:
        """Return the bytes as a NumPy array; shares memory."""
        return self._data

    def as_buffer_like(self) -> object:
        """Return the bytes as a `memoryview`; shares memory."""
        return self._data.data

    def to_bytes(self) -> bytes:
        """Return a copy of the bytes."""
        return self._data.tobytes()

    def combine(self, others: Iterable[Buffer]) -> Self:
        """Concatenate these bytes and those of others."""
        return type(self)(np.concatenate([self._data.view("u1"), *(b.as_numpy_array().view("u1") for b in others)]))

    def __add__(self, other: Buffer) -> Self:
        return self.combine([other])

    def __getitem__(self, key: slice) -> Self:
        return type(self)(self._data[key])

    def __setitem__(self, key: slice, value: object) -> None:
        self._data[key] = value.as_numpy_array() if isinstance(value, Buffer) else value

    def __len__(self) -> int:
        return len(self._data)

    def __bytes__(self) -> bytes:
        return self.to_bytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Buffer({len(self)} bytes)"


class _Allocating:
    """The class above `NDBuffer`, whose `empty` subclasses with a `create` of their own call."""

    @classmethod
    def empty(cls, shape: Iterable[int], dtype: npt.DTypeLike, order: Literal["C", "F"] = "C") -> Self:
        """Allocate an array by `create`."""
        return cls.create(shape=shape, dtype=dtype, order=order)  # type: ignore[attr-defined, no-any-return]


class NDBuffer(_Allocating):
    """Hold an array of elements."""

    def __init__(self, array: object) -> None:
        """Wrap `array`, whose memory is shared."""
        self._data: AnyArray = np.asarray(array)

    @classmethod
    def create(
        cls, *, shape: Iterable[int], dtype: npt.DTypeLike, order: Literal["C", "F"] = "C", fill_value: object = None
    ) -> Self:
        """Allocate an array filled with zeros or `fill_value`."""
        data = np.zeros(tuple(shape), dtype, order)
        if data.dtype.kind in "mM":
            data = data.view(dtype)  # allocating loses the scale and byte order of generic units
        if fill_value is not None and not (isinstance(fill_value, int) and fill_value == 0):
            data[...] = fill_value
        return cls(data)

    @classmethod
    def empty(cls, shape: Iterable[int], dtype: npt.DTypeLike, order: Literal["C", "F"] = "C") -> Self:
        """Allocate an uninitialised array."""
        data = np.empty(tuple(shape), dtype, order)
        return cls(data.view(dtype) if data.dtype.kind in "mM" else data)

    @classmethod
    def from_ndarray_like(cls, ndarray_like: object) -> Self:
        """Make a buffer over the memory of an array."""
        return cls(ndarray_like)

    @classmethod
    def from_numpy_array(cls, array_like: npt.ArrayLike) -> Self:
        """Make a buffer over the memory of an array, or over a new array made from another object."""
        return cls(array_like)

    def as_ndarray_like(self) -> AnyArray:
        """Return the array; shares memory."""
        return self._data

    def as_numpy_array(self) -> AnyArray:
        """Return the array; shares memory."""
        return self._data

    def as_scalar(self) -> Any:
        """Return the only element. Raises `ValueError` when there are several."""
        if self._data.size != 1:
            raise ValueError(f"Buffer does not contain a single scalar value, but {self._data.size}")
        return self._data.reshape(())[()]

    @property
    def dtype(self) -> AnyDType:
        """The dtype."""
        return self._data.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._data.shape

    @property
    def byteorder(self) -> str:
        """ "little" or "big"."""
        return "big" if self._data.dtype.str.startswith(">") else "little"

    def reshape(self, newshape: int | tuple[int, ...]) -> Self:
        """Return the same elements in another shape."""
        return type(self)(self._data.reshape(newshape))

    def squeeze(self, axis: tuple[int, ...]) -> Self:
        """Remove axes of length 1."""
        return type(self)(self._data.squeeze(axis))

    def astype(self, dtype: npt.DTypeLike, order: Literal["K", "A", "C", "F"] = "K") -> Self:
        """Return a copy in another dtype."""
        return type(self)(self._data.astype(dtype, order))

    def transpose(self, axes: Sequence[int] | None) -> Self:
        """Permute the axes."""
        return type(self)(self._data.transpose(axes))

    def copy(self) -> Self:
        """Return a copy."""
        return type(self)(self._data.copy())

    def fill(self, value: object) -> None:
        """Set every element."""
        self._data.fill(value)

    def all_equal(self, other: Any, equal_nan: bool = True) -> bool:
        """Return whether every element equals `other`; nothing equals ``None``. A zero of type float is compared bit by bit."""
        if other is None:
            return False
        data = self._data
        wanted = np.asarray(other)
        plain = data.dtype.kind not in "USTOV"
        if plain and wanted.dtype.kind == "f" and wanted.ndim == 0 and wanted == 0:  # −0.0 is not 0.0
            bits = f"V{data.dtype.itemsize}"
            return np.array_equal(data.view(bits), np.broadcast_to(wanted.astype(data.dtype), data.shape).view(bits))
        return np.array_equal(data, np.broadcast_to(wanted, data.shape), equal_nan=equal_nan and plain)

    def __getitem__(self, key: Any) -> Self:
        return type(self)(self._data[(*key, ...)] if isinstance(key, tuple) and ... not in key else self._data[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value.as_numpy_array() if isinstance(value, NDBuffer) else value

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"NDBuffer(shape={self.shape}, dtype={self.dtype})"


class BufferPrototype(NamedTuple):
    """Pair the classes of which buffers are made."""

    buffer: type[Buffer]
    nd_buffer: type[NDBuffer]


buffer_prototype = numpy_buffer_prototype = BufferPrototype(Buffer, NDBuffer)


def as_numpy_array_wrapper(func: Callable[[AnyArray], bytes], buf: Buffer, prototype: BufferPrototype) -> Buffer:
    """Apply `func`, which takes and returns plain bytes, to a buffer."""
    return prototype.buffer.from_bytes(func(buf.as_numpy_array()))


__all__ = [
    "Buffer",
    "BufferPrototype",
    "NDBuffer",
    "as_numpy_array_wrapper",
    "buffer_prototype",
    "numpy_buffer_prototype",
]
