"""A new value made of pieces: bytes, and ranges of the value before it that stay as they are.

So a shard can be changed without reading, joining or decoding the inner chunks that are not touched. Codecs make pieces,
stores write them (`Store.splice`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.types import Buffer, ByteRange

Piece: TypeAlias = Buffer | ByteRange
"""A piece of a new value: bytes, or a range of the value before it that stays as it is."""


class Stored(Protocol):
    """A stored value, for who reads parts of it."""

    nbytes: int

    def read(self, byte_range: ByteRange) -> Buffer:
        """The bytes of a range; like `ByteRange.bounds`, it gives what is there."""
        ...


def flat(value: Buffer) -> npt.NDArray[np.uint8]:
    """The bytes of contiguous memory, to be cut into views for several threads: ``flat(value)[start:stop].data``.

    Cuts of one memoryview are not for several threads: free-threaded CPython 3.14 counts their users without a lock, and
    takes the memory away from under the last ones when it has miscounted.

    >>> bytes(flat(b"0123")[1:3].data)
    b'12'
    """
    view = memoryview(value)
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


class StoredBytes:
    """A stored value that is in memory."""

    def __init__(self, value: Buffer) -> None:
        self._flat = flat(value)
        self.nbytes = self._flat.nbytes

    def read(self, byte_range: ByteRange) -> Buffer:
        """See `Stored.read`; a view."""
        start, stop = byte_range.bounds(self.nbytes)
        return self._flat[start:stop].data


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
