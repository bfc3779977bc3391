"""A new value made of pieces: bytes, and ranges of the value before it that stay as they are.

So a shard can be changed without reading, joining or decoding the inner chunks that are not touched. Codecs make pieces,
stores write them (`Store.splice`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from tessarr.types import Buffer, ByteRange

Piece: TypeAlias = Buffer | ByteRange
"""A piece of a new value: bytes, or a range of the value before it that stays as it is."""


class Stored(Protocol):
    """A stored value, for who reads parts of it."""

    nbytes: int

    def read(self, byte_range: ByteRange) -> Buffer:
        """The bytes of a range; like `ByteRange.bounds`, it gives what is there."""
        ...


class StoredBytes:
    """A stored value that is in memory."""

    def __init__(self, value: Buffer) -> None:
        view = memoryview(value)
        self._view = view.cast("B") if view.nbytes else memoryview(b"")
        self.nbytes = self._view.nbytes

    def read(self, byte_range: ByteRange) -> Buffer:
        """See `Stored.read`; a view."""
        start, stop = byte_range.bounds(self.nbytes)
        return self._view[start:stop]


def join(pieces: Sequence[Piece], stored: Stored | None) -> bytes:
    """The value that `pieces` make.

    >>> join([ByteRange(0, 2), b"-", ByteRange(-1)], StoredBytes(b"abcd"))
    b'ab-d'
    """
    parts: list[Buffer] = []
    for piece in pieces:
        if isinstance(piece, ByteRange):
            assert stored is not None, "a range of a value that is not there"
            parts.append(stored.read(piece))
        else:
            parts.append(piece)
    return b"".join(parts)


def pieces_nbytes(pieces: Sequence[Piece]) -> int:
    """The size of the value that `pieces`, whose ranges have both ends, make."""
    return sum(
        (piece.stop or 0) - piece.start if isinstance(piece, ByteRange) else memoryview(piece).nbytes
        for piece in pieces
    )
