"""Shard indexes of a remote array that were read once, so that the next read of the same shard is one wave.

An entry is worth nothing by itself: it is used only together with data of the same version (ETag) of the shard, which the
answer to the request for the data tells.
"""

from __future__ import annotations

from typing import NamedTuple

from tessarr.codecs.sharding import ShardIndex
from tessarr.stores.base import Version
from tessarr.stores.locks import Moment
from tessarr.types import ByteRange

MOST_NBYTES = 32 << 20
_CHANGE = Moment()
"""Of all indexes: a change is a moment, and looking takes no lock."""


class KnownIndex(NamedTuple):
    """An index, and the version of the stored value that it is part of."""

    entries: ShardIndex
    version: Version
    fresh: bool = False
    """It was read within the present call."""


class ShardIndexes:
    """Of one bound array. Holds at most `MOST_NBYTES` bytes; when that is full it begins anew."""

    __slots__ = ("_known", "_nbytes")

    def __init__(self) -> None:
        self._known: dict[str, dict[ByteRange | None, KnownIndex]] = {}
        self._nbytes = 0

    def get(self, key: str, within: ByteRange | None) -> KnownIndex | None:
        """The index of the shard in the range `within` of `key` (``None``: the whole value), if it is known."""
        return self._known.get(key, {}).get(within)

    def keep(self, key: str, within: ByteRange | None, known: KnownIndex) -> None:
        """Remember an index."""
        nbytes = known.entries.nbytes
        with _CHANGE:
            if self._nbytes + nbytes > MOST_NBYTES:
                self._known, self._nbytes = {}, 0
            if nbytes <= MOST_NBYTES:
                of_key = self._known.setdefault(key, {})
                before = of_key.get(within)
                of_key[within] = known
                self._nbytes += nbytes - (0 if before is None else before.entries.nbytes)

    def forget(self, key: str) -> None:
        """`key` was written, or turned out to be another version."""
        with _CHANGE:
            gone = self._known.pop(key, None)
            self._nbytes -= sum(known.entries.nbytes for known in gone.values()) if gone else 0
