"""zarr-python's ``zarr.buffer.cpu``: the objects that its codecs and stores hand to one another, over NumPy arrays.

tessarr itself passes plain Python buffers and NumPy arrays. These classes are for codecs and stores that were written for
zarr-python (`tessarr.abc.codec`, `tessarr.abc.store`); where tessarr's own functions take a ``prototype`` it has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tessarr.types import AnyArray, AnyDType


class Buffer:
    """A row of bytes."""

    def __init__(self, array_like: Any) -> None:
        """`array_like` is 1-d, of one byte per element; its memory is shared."""
        data = np.asarray(array_like)
        if data.ndim != 1 or data.dtype.itemsize != 1:
            raise ValueError(f"a buffer is one-dimensional, of bytes; got {data.ndim} dimensions of {data.dtype}")
        self._data = data

    @classmethod
    def create_zero_length(cls) -> Self:
        """Without bytes."""
        return cls(np.empty(0, "u1"))

    @classmethod
    def from_array_like(cls, array_like: Any) -> Self:
        """Over the memory of a 1-d array of bytes."""
        return cls(array_like)

    @classmethod
    def from_buffer(cls, buffer: Buffer) -> Self:
        """Over the memory of another buffer."""
        return cls(buffer.as_numpy_array())

    @classmethod
    def from_bytes(cls, bytes_like: Any) -> Self:
        """Over the memory of bytes, or of anything that exports them."""
        return cls(np.frombuffer(bytes_like, "u1"))

    def as_array_like(self) -> Any:
        """The bytes as an array; shares memory."""
        return self._data

    def as_numpy_array(self) -> AnyArray:
        """The bytes as a NumPy array; shares memory."""
        return self._data

    def as_buffer_like(self) -> Any:
        """The bytes as a `memoryview`; shares memory."""
        return self._data.data

    def to_bytes(self) -> bytes:
        """A copy of the bytes."""
        return self._data.tobytes()

    def combine(self, others: Iterable[Buffer]) -> Self:
        """These bytes and those of others, one after another."""
        return type(self)(np.concatenate([self._data.view("u1"), *(b.as_numpy_array().view("u1") for b in others)]))

    def __add__(self, other: Buffer) -> Self:
        return self.combine([other])

    def __getitem__(self, key: slice) -> Self:
        return type(self)(self._data[key])

    def __setitem__(self, key: slice, value: Any) -> None:
        self._data[key] = value.as_numpy_array() if isinstance(value, Buffer) else value

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Buffer({len(self)} bytes)"


class NDBuffer:
    """An array of elements."""

    def __init__(self, array: Any) -> None:
        """The memory of `array` is shared."""
        self._data: AnyArray = np.asarray(array)

    @classmethod
    def create(
        cls, *, shape: Iterable[int], dtype: npt.DTypeLike, order: Literal["C", "F"] = "C", fill_value: Any = None
    ) -> Self:
        """New memory, zeros or `fill_value` in it."""
        data = np.zeros(tuple(shape), dtype, order)
        if fill_value is not None:
            data.fill(fill_value)
        return cls(data)

    @classmethod
    def empty(cls, shape: Iterable[int], dtype: npt.DTypeLike, order: Literal["C", "F"] = "C") -> Self:
        """New memory, anything in it."""
        return cls(np.empty(tuple(shape), dtype, order))

    @classmethod
    def from_ndarray_like(cls, ndarray_like: Any) -> Self:
        """Over the memory of an array."""
        return cls(ndarray_like)

    @classmethod
    def from_numpy_array(cls, array_like: npt.ArrayLike) -> Self:
        """Over the memory of an array; of something else, over a new array."""
        return cls(array_like)

    def as_ndarray_like(self) -> Any:
        """The array; shares memory."""
        return self._data

    def as_numpy_array(self) -> AnyArray:
        """The array; shares memory."""
        return self._data

    def as_scalar(self) -> Any:
        """The only element. Raises `ValueError` when there are several."""
        if self._data.size != 1:
            raise ValueError(f"an array of {self._data.size} elements is no scalar")
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

    def reshape(self, newshape: Any) -> Self:
        """The same elements in another shape."""
        return type(self)(self._data.reshape(newshape))

    def squeeze(self, axis: tuple[int, ...]) -> Self:
        """Without axes of length 1."""
        return type(self)(self._data.squeeze(axis))

    def astype(self, dtype: npt.DTypeLike, order: Literal["K", "A", "C", "F"] = "K") -> Self:
        """A copy in another dtype."""
        return type(self)(self._data.astype(dtype, order))

    def transpose(self, axes: Any) -> Self:
        """The same elements with the axes in another order."""
        return type(self)(self._data.transpose(axes))

    def copy(self) -> Self:
        """A copy."""
        return type(self)(self._data.copy())

    def fill(self, value: Any) -> None:
        """Set every element."""
        self._data.fill(value)

    def all_equal(self, other: Any, equal_nan: bool = True) -> bool:
        """Whether every element equals `other`; −0.0 is not 0.0."""
        same = (self._data == other) & (
            np.signbit(self._data) == np.signbit(other) if self._data.dtype.kind == "f" else True
        )
        if equal_nan and self._data.dtype.kind in "fcmM":
            same = same | ((self._data != self._data) & (other != other))
        return bool(np.all(same))

    def __getitem__(self, key: Any) -> Self:
        return type(self)(self._data[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value.as_numpy_array() if isinstance(value, NDBuffer) else value

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"NDBuffer(shape={self.shape}, dtype={self.dtype})"


class BufferPrototype(NamedTuple):
    """The classes to make buffers of."""

    buffer: type[Buffer]
    nd_buffer: type[NDBuffer]


buffer_prototype = numpy_buffer_prototype = BufferPrototype(Buffer, NDBuffer)


def as_numpy_array_wrapper(func: Callable[[AnyArray], bytes], buf: Buffer, prototype: BufferPrototype) -> Buffer:
    """What `func`, which takes and gives plain bytes, makes of a buffer."""
    return prototype.buffer.from_bytes(func(buf.as_numpy_array()))


__all__ = [
    "Buffer",
    "BufferPrototype",
    "NDBuffer",
    "as_numpy_array_wrapper",
    "buffer_prototype",
    "numpy_buffer_prototype",
]
