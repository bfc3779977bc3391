"""zarr-python's names for byte ranges, for one stored value, and for the abilities of its stores."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, Self, runtime_checkable

from tessarr.types import Buffer, ByteRange

ByteRequest = ByteRange


class RangeByteRequest(ByteRange):
    """Bytes `start` to `end`, half-open.

    >>> RangeByteRequest(2, 5) == ByteRange(2, 5), RangeByteRequest(2, 5).end
    (True, 5)
    """

    __match_args__ = ("start", "end")  # pyright: ignore[reportAssignmentType] - the names of zarr-python

    def __new__(cls, start: int, end: int) -> Self:
        return super().__new__(cls, start, end)

    @property
    def end(self) -> int:
        """The end of the range, exclusive."""
        assert self.stop is not None
        return self.stop

    def __getnewargs__(self) -> tuple[int, int]:
        return self.start, self.end


class OffsetByteRequest(ByteRange):
    """All bytes from `offset` on.

    >>> OffsetByteRequest(2) == ByteRange(2), OffsetByteRequest(2).offset
    (True, 2)
    """

    __match_args__ = ("offset",)  # pyright: ignore[reportAssignmentType] - the names of zarr-python

    def __new__(cls, offset: int) -> Self:
        return super().__new__(cls, offset)

    @property
    def offset(self) -> int:
        """Offset of the first byte."""
        return self.start

    def __getnewargs__(self) -> tuple[int]:
        return (self.offset,)


class SuffixByteRequest(ByteRange):
    """The last `suffix` bytes.

    >>> SuffixByteRequest(4) == ByteRange(-4), SuffixByteRequest(4).suffix
    (True, 4)
    """

    __match_args__ = ("suffix",)  # pyright: ignore[reportAssignmentType] - the names of zarr-python

    def __new__(cls, suffix: int) -> Self:
        return super().__new__(cls, -suffix)

    @property
    def suffix(self) -> int:
        """Number of bytes."""
        return -self.start

    def __getnewargs__(self) -> tuple[int]:
        return (self.suffix,)


@runtime_checkable
class SupportsGetSync(Protocol):
    """A store of zarr-python that can read without an event loop. All of tessarr's stores can: `Store.get`."""

    def get_sync(self, key: str, *, prototype: object = None, byte_range: object = None) -> Buffer | None:
        """Read the value of `key`; ``None`` when there is none."""
        ...


@runtime_checkable
class SupportsSetSync(SupportsGetSync, Protocol):
    """A store of zarr-python that can write without an event loop."""

    def set_sync(self, key: str, value: object) -> None:
        """Replace the value of `key`."""
        ...


@runtime_checkable
class SupportsDeleteSync(SupportsSetSync, Protocol):
    """A store of zarr-python that can delete without an event loop."""

    def delete_sync(self, key: str) -> None:
        """Remove `key`."""
        ...


SupportsSyncStore = SupportsDeleteSync


@runtime_checkable
class ByteGetter(Protocol):
    """A stored value that can be read."""

    async def get(self, prototype: object, byte_range: ByteRange | None = None) -> Any:
        """Read the value, or a range of bytes; ``None`` when there is no value."""
        ...


@runtime_checkable
class ByteSetter(ByteGetter, Protocol):
    """A stored value that can be read, replaced and removed."""

    async def set(self, value: object) -> None:
        """Replace the value."""
        ...

    async def delete(self) -> None:
        """Remove the value."""
        ...

    async def set_if_not_exists(self, default: object) -> None:
        """Set the value if none is stored."""
        ...


@runtime_checkable
class SyncByteGetter(Protocol):
    """A stored value that can be read without an event loop."""

    def get_sync(self, prototype: object = None, byte_range: ByteRange | None = None) -> object:
        """Read the value, or a range of bytes; ``None`` when there is no value."""
        ...


@runtime_checkable
class SyncByteSetter(SyncByteGetter, Protocol):
    """A stored value that can be read, replaced and removed without an event loop."""

    def set_sync(self, value: object) -> None:
        """Replace the value."""
        ...

    def delete_sync(self) -> None:
        """Remove the value."""
        ...


async def set_or_delete(byte_setter: ByteSetter, value: object) -> None:
    """Replace a stored value, or remove it when `value` is ``None``."""
    change: Awaitable[None] = byte_setter.delete() if value is None else byte_setter.set(value)
    await change


__all__ = [
    "ByteGetter",
    "ByteRequest",
    "ByteSetter",
    "OffsetByteRequest",
    "RangeByteRequest",
    "SuffixByteRequest",
    "SupportsDeleteSync",
    "SupportsGetSync",
    "SupportsSetSync",
    "SupportsSyncStore",
    "SyncByteGetter",
    "SyncByteSetter",
    "set_or_delete",
]
