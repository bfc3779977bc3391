"""Which version of a value a chunk read sees, and the shard indexes that are kept with their version.

A shard may be replaced between the request for its index and that for its inner chunks. Where the store names versions
(ETags), all responses must be of one. Elsewhere, a store that is not remote is asked for the index again with the data: an
index that stayed the same fits the new data as it did the old. An index that was kept of an earlier read is worth nothing by
itself; it is used only with data of the same version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tessarr.codecs.sharding import MISSING, ShardIndex
from tessarr.indexing.plan import Part
from tessarr.stores.fetch import Version
from tessarr.stores.locks import Moment
from tessarr.stores.protocols import Remote
from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from tessarr.engine.bound import BoundArray

MOST_NBYTES = 32 << 20
_state_lock = Moment()
"""Of all `ShardIndexes`; looking takes no lock."""


class ValueChangedError(Exception):
    """The value is not the one that was partly read."""


class KnownIndex(NamedTuple):
    """An index, and the version of the stored value that it is part of."""

    entries: ShardIndex
    version: Version


class ShardIndexes:
    """The indexes of one bound array. Holds at most `MOST_NBYTES` bytes; when that is full it begins empty again."""

    __slots__ = ("_known", "_nbytes")

    def __init__(self) -> None:
        self._known: dict[str, dict[ByteRange, KnownIndex]] = {}
        self._nbytes = 0

    def get(self, key: str, within: ByteRange) -> KnownIndex | None:
        """The index of the shard that is the range `within` of the value of `key`, if it is known."""
        return self._known.get(key, {}).get(within)

    def keep(self, key: str, within: ByteRange, known: KnownIndex) -> None:
        """Remember an index."""
        nbytes = known.entries.nbytes
        with _state_lock:
            if self._nbytes + nbytes > MOST_NBYTES:
                self._known, self._nbytes = {}, 0
            if nbytes <= MOST_NBYTES:
                of_key = self._known.setdefault(key, {})
                before = of_key.get(within)
                of_key[within] = known
                self._nbytes += nbytes - (0 if before is None else before.entries.nbytes)

    def forget(self, key: str) -> None:
        """Drop the indexes of `key`, which was written, or turned out to be another version."""
        with _state_lock:
            gone = self._known.pop(key, None)
            self._nbytes -= sum(known.entries.nbytes for known in gone.values()) if gone else 0


class ValueVersion:
    """What one attempt to read the value of `key` knows of the version that it reads."""

    __slots__ = ("_guards", "_indexes", "_is_current", "_key", "_version", "remote")

    def __init__(self, bound: BoundArray, key: str) -> None:
        self._key = key
        self._indexes = bound.indexes
        self.remote = isinstance(bound.store, Remote)
        self._version: Version | None = None
        self._is_current = False
        """A response of this attempt had the version, not only an index from the cache."""
        self._guards: list[tuple[ByteRange, bytes]] = []

    def known_index(self, within: ByteRange, inners: Sequence[Part]) -> ShardIndex | None:
        """An index of an earlier read, if some of `inners` are stored by it: the response with their data will tell
        whether it still holds."""
        known = None if self._indexes is None else self._indexes.get(self._key, within)
        if known is None or (self._version is not None and self._version != known.version):
            return None
        if not any(known.entries[inner.coords][0] != MISSING for inner in inners):
            return None
        self._version = known.version
        return known.entries

    def keep_index(self, within: ByteRange, index: ShardIndex, at: ByteRange, encoded: Buffer) -> ShardIndex:
        """Keep an index that was just read from the range `at`: in the cache where the version is known, else as a guard."""
        if self._version is not None and self._indexes is not None:
            self._indexes.keep(self._key, within, KnownIndex(index, self._version))
        elif self._version is None and not self.remote:
            self._guards.append((at, bytes(encoded)))
        return index

    def guards(self) -> list[ByteRange]:
        """Ranges to request with the others, to see that they are still the same."""
        return [] if self._version is not None else [at for at, _ in self._guards]

    def check(self, version: Version | None, guards: Sequence[Buffer]) -> None:
        """Raise `ValueChangedError` for a response of another version, or whose guards are not what they were."""
        if self._version is None:
            self._version, self._is_current = version, version is not None
            if [bytes(now) for now in guards] != [then for _, then in self._guards]:
                raise ValueChangedError
        # A range past the end names none; then only an index of an earlier read is in doubt.
        elif version != self._version and not (version is None and self._is_current):
            raise ValueChangedError
        else:
            self._is_current = self._is_current or version is not None

    def check_missing(self) -> None:
        """Raise `ValueChangedError` for a value that was there before."""
        if self._version is not None or self._guards:
            raise ValueChangedError
