"""The store contract, and zarr-python's names for byte ranges."""

from __future__ import annotations

from tessarr.stores.base import Store
from tessarr.types import ByteRange


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

__all__ = ["ByteRequest", "OffsetByteRequest", "RangeByteRequest", "Store", "SuffixByteRequest"]
