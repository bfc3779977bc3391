"""The store contract, and zarr-python's names for byte ranges and for the abilities of its own stores."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from tessarr.stores.base import Store
from tessarr.types import Buffer, ByteRange


def RangeByteRequest(start: int, end: int) -> ByteRange:  # noqa: N802 - zarr-python's name
    """Bytes `start` to `end`, half-open."""
    return ByteRange(start, end)


def OffsetByteRequest(offset: int) -> ByteRange:  # noqa: N802 - zarr-python's name
    """Everything from `offset` on."""
    return ByteRange(offset)


def SuffixByteRequest(suffix: int) -> ByteRange:  # noqa: N802 - zarr-python's name
    """The last `suffix` bytes."""
    return ByteRange(-suffix)


ByteRequest = ByteRange


@runtime_checkable
class SupportsGetSync(Protocol):
    """A store of zarr-python that can read without an event loop. tessarr's stores always can: `Store.get`."""

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Buffer | None:
        """The value of `key`, or ``None``."""
        ...


@runtime_checkable
class SupportsSetSync(SupportsGetSync, Protocol):
    """A store of zarr-python that can write without an event loop."""

    def set_sync(self, key: str, value: Any) -> None:
        """Replace the value of `key`."""
        ...


@runtime_checkable
class SupportsDeleteSync(SupportsSetSync, Protocol):
    """A store of zarr-python that can delete without an event loop."""

    def delete_sync(self, key: str) -> None:
        """Remove `key`."""
        ...


SupportsSyncStore = SupportsDeleteSync

__all__ = [
    "ByteRequest",
    "OffsetByteRequest",
    "RangeByteRequest",
    "Store",
    "SuffixByteRequest",
    "SupportsDeleteSync",
    "SupportsGetSync",
    "SupportsSetSync",
    "SupportsSyncStore",
]
