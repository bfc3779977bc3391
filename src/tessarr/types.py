"""Define the types that every floor shares, without behaviour except that of a byte range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, SupportsIndex, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Buffer as WritableBuffer

    AnyArray: TypeAlias = npt.NDArray[Any]
    """A NumPy array whose data type is known only at run time."""
    _Bytes: TypeAlias = npt.NDArray[np.generic]
else:  # `numpy.typing` is a twentieth of the import of this package
    AnyArray = _Bytes = np.ndarray

JSON: TypeAlias = "None | bool | int | float | str | Sequence[JSON] | Mapping[str, JSON]"
"""A value of a JSON document."""

JSONObject: TypeAlias = dict[str, JSON]

AnyDType: TypeAlias = np.dtype[Any]
"""A NumPy dtype that is known only at run time."""

Buffer: TypeAlias = bytes | bytearray | memoryview | _Bytes
"""An object that exports one C-contiguous buffer. A receiver may read the buffer and must not write to it."""


class SupportsDLPack(Protocol):
    """A tensor or array whose memory others can use. Source: array API standard, "Data interchange mechanisms"."""

    def __dlpack_device__(self) -> tuple[int, int]: ...


OutputLike: TypeAlias = "AnyArray | WritableBuffer | SupportsDLPack"
"""Memory of the caller that elements are read to (`tessarr.common.output`)."""

ZarrFormat: TypeAlias = Literal[1, 2, 3]
AccessMode: TypeAlias = Literal["r", "r+", "a", "w", "w-"]
Shape: TypeAlias = tuple[int, ...]
ShapeLike: TypeAlias = "int | np.integer | Iterable[int | np.integer]"
"""A shape as users give it: one length stands for one axis."""
Coords: TypeAlias = tuple[int, ...]
"""The index of a chunk in its grid."""
AxisSelection: TypeAlias = "SupportsIndex | slice | EllipsisType | npt.ArrayLike | None"
"""What selects along one axis, or several (Ellipsis, a mask); a name, or a list of names, picks fields."""
SelectionLike: TypeAlias = "AxisSelection | tuple[AxisSelection, ...]"
"""What users write between the brackets of an array."""
ValuesLike: TypeAlias = "npt.ArrayLike | JSON"
"""What users write to selected elements: what NumPy makes an array of, or for elements of the type json a value of JSON."""
Selected: TypeAlias = AnyArray | Any
"""What reading a selection gives: an array, or one element (a NumPy scalar, for some data types a Python object) where
every axis is dropped. As in NumPy's own stubs, type checkers know the members of arrays and allow those of elements."""
Fields: TypeAlias = str | list[str] | None
"""Fields of a structured data type: one name, or several."""
Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the finished amount, the total amount, and a description."""


class ByteRange(NamedTuple):
    """Part of a stored value: bytes `start` to `stop`, half-open.

    ``stop`` is ``None`` for "to the end"; a negative `start` (with ``stop`` ``None``) is the last ``-start`` bytes.
    A range beyond the end of a value is cut at the end.

    >>> ByteRange(2, 5).bounds(10), ByteRange(-4).bounds(10), ByteRange(8, 99).bounds(10), ByteRange(12).bounds(10)
    ((2, 5), (6, 10), (8, 10), (10, 10))
    """

    start: int
    stop: int | None = None

    def bounds(self, nbytes: int) -> tuple[int, int]:
        """Return the range as ``(start, stop)`` within a value of `nbytes` bytes."""
        if self.start < 0:
            return max(0, nbytes + self.start), nbytes
        stop = nbytes if self.stop is None else min(self.stop, nbytes)
        return min(self.start, stop), stop
