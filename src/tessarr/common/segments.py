"""Describe a new value by pieces: new bytes, and ranges of the old value that are kept.

An update of a shard need not read, join or decode the inner chunks that it keeps. Codecs make pieces, stores write them
(`Store.splice`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    import numpy.typing as npt

Piece: TypeAlias = Buffer | ByteRange
"""A piece of a new value: bytes, or a range of the old value that is kept."""


class Stored(Protocol):
    """Read parts of a stored value."""

    nbytes: int

    def read(self, byte_range: ByteRange) -> Buffer:
        """Read the bytes of a range; a range beyond the end is cut there, as by `ByteRange.bounds`."""
        ...


def flat(value: Buffer) -> npt.NDArray[np.uint8]:
    """View contiguous memory as bytes that several threads may slice: ``flat(value)[start:stop].data``.

    Slices of one memoryview must not be shared between threads: free-threaded CPython 3.14 counts references to a
    memoryview's buffer without a lock, and may free memory that is still in use.

    >>> bytes(flat(b"0123")[1:3].data)
    b'12'
    """
    view = memoryview(value)
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


class StoredBytes:
    """Read parts of a value in memory."""

    def __init__(self, value: Buffer) -> None:
        self._flat = flat(value)
        self.nbytes = self._flat.nbytes

    def read(self, byte_range: ByteRange) -> Buffer:
        """Return a view of a range."""
        start, stop = byte_range.bounds(self.nbytes)
        return self._flat[start:stop].data


def join(pieces: Sequence[Piece], stored: Stored | None) -> bytes:
    """Concatenate `pieces` to the new value.

    >>> join([ByteRange(0, 2), b"-", ByteRange(-1)], StoredBytes(b"abcd"))
    b'ab-d'
    """
    parts: list[Buffer] = []
    for piece in pieces:
        if isinstance(piece, ByteRange):
            assert stored is not None, "a range of a missing value"
            parts.append(stored.read(piece))
        else:
            parts.append(piece)
    return b"".join(parts)


def pieces_nbytes(pieces: Sequence[Piece]) -> int:
    """Return the size of the new value of `pieces`, whose ranges have both ends."""
    return sum(
        (piece.stop or 0) - piece.start if isinstance(piece, ByteRange) else memoryview(piece).nbytes
        for piece in pieces
    )
