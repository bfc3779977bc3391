"""Stamps: what a listing says of stored values, so that changes of them are noticed without a request for each."""

from __future__ import annotations

_BITS = 128


class StampSum:
    """Adds up the stamps of single values, in any order, in constant memory.

    >>> one, two = StampSum(), StampSum()
    >>> one.add("a", "1"), one.add("b", "2"), two.add("b", "2"), two.add("a", "1")
    (None, None, None, None)
    >>> one.hexdigest() == two.hexdigest() != StampSum().hexdigest()
    True
    """

    def __init__(self) -> None:
        from hashlib import blake2b  # here, since programs that only open arrays need no digests

        self._total, self._hash = 0, blake2b

    def add(self, key: str, stamp: object) -> None:
        """Add a value: its key, and anything whose text is another one when the value has changed."""
        hashed = self._hash(f"{key}\n{stamp}".encode(errors="surrogateescape"), digest_size=_BITS // 8)
        self._total = (self._total + int.from_bytes(hashed.digest(), "little")) % (1 << _BITS)

    def hexdigest(self) -> str:
        """Return the sum."""
        return f"{self._total:032x}"
