"""Byte ranges within a range of a value: a shard's index, an inner chunk, or an inner chunk of an inner chunk."""

from __future__ import annotations

from tessarr.common.segments import flat
from tessarr.errors import ShardIndexError
from tessarr.types import Buffer, ByteRange

WHOLE = ByteRange(0)
"""The whole value, whose size is unknown."""


def size_of(within: ByteRange) -> int | None:
    """Return the bytes of the range; ``None`` for `WHOLE`."""
    return None if within.stop is None else within.stop - within.start


def shift(within: ByteRange, wanted: ByteRange) -> ByteRange:
    """Shift `wanted`, a range within the range `within`, to a range of the value."""
    if within.stop is None:
        return wanted
    start, stop = wanted.bounds(within.stop - within.start)
    return ByteRange(within.start + start, within.start + stop)


def cut(data: Buffer, wanted: ByteRange) -> Buffer:
    """Cut the range `wanted` out of `data`, without a copy."""
    view = flat(data)
    start, stop = wanted.bounds(view.nbytes)
    return view[start:stop].data


def check_length(piece: Buffer, within: ByteRange) -> None:
    """Raise `ShardIndexError` unless `piece`, the response to a request for the range `within`, is as long as the range."""
    size, nbytes = size_of(within), memoryview(piece).nbytes
    if size not in (None, nbytes):
        raise ShardIndexError(
            "a shard ends before an inner chunk that its index lists",
            codec="sharding_indexed",
            expected=f"{size} bytes at offset {within.start}",
            got=f"{nbytes} bytes",
        )
