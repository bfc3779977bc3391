"""Check that all bytes of a chunk read are of one version of the value, and cache shard indexes with their version.

A shard may be replaced between the request for its index and that for its inner chunks. Where the store returns versions
(ETags), all responses must be of one version. From a store that is not remote the index is read again together with the data:
an unchanged index is valid for the data. A cached index is never used alone, only with data of the same version.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tessarr.codecs.sharding import MISSING, ShardIndex, ShardLayout
from tessarr.engine.reference.within import WHOLE, shift
from tessarr.indexing.chunk_plan import Part
from tessarr.stores.fetch import Fetch, Version, version_of
from tessarr.stores.locks import fork_safe_lock
from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from tessarr.engine.bound import BoundArray

MOST_NBYTES = 32 << 20
_state_lock = fork_safe_lock()
"""Guards changes of all `ShardIndexCache`; look-ups take no lock."""


class ValueChangedError(Exception):
    """The value was replaced during a read of its parts."""


class CachedIndex(NamedTuple):
    """A cached shard index, and the version of the stored value that contains the index."""

    entries: ShardIndex
    version: Version


class ShardIndexCache:
    """The cache of shard indexes of one bound array, of at most `MOST_NBYTES` bytes; a full cache is emptied."""

    __slots__ = ("_known", "_nbytes")

    def __init__(self) -> None:
        self._known: dict[str, dict[ByteRange, CachedIndex]] = {}
        self._nbytes = 0

    def get(self, key: str, within: ByteRange) -> CachedIndex | None:
        """Look up the index of the shard in the range `within` of the value of `key`; ``None``: cache miss."""
        return self._known.get(key, {}).get(within)

    def keep(self, key: str, within: ByteRange, known: CachedIndex) -> None:
        """Cache an index."""
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
        """Invalidate the indexes of `key`, which was written, or has another version."""
        with _state_lock:
            gone = self._known.pop(key, None)
            self._nbytes -= sum(known.entries.nbytes for known in gone.values()) if gone else 0


class VersionCheck:
    """Track the version of the value of `key` during one attempt to read parts of it."""

    __slots__ = ("_guards", "_indexes", "_is_current", "_key", "_remote", "_version")

    def __init__(self, bound: BoundArray, key: str) -> None:
        self._key = key
        self._indexes = bound.indexes
        self._remote = bound.access.remote
        self._version: Version | None = None
        self._is_current = False
        """A response of this attempt had the version, so that the version is not only that of a cached index."""
        self._guards: list[tuple[ByteRange, bytes]] = []

    def request(self, ranges: Sequence[ByteRange]) -> Fetch:
        """Request `ranges` of the value; with them the guards, whose bytes must be unchanged, where there are no versions."""
        guards = [] if self._version is not None else [at for at, _ in self._guards]
        return Fetch(self._key, None if ranges == [WHOLE] and not guards else (*ranges, *guards))

    def checked(self, found: list[Buffer], ranges: Sequence[ByteRange]) -> list[Buffer]:
        """Return the buffers of `ranges`. Raises `ValueChangedError` for another version, or for changed guards."""
        version, guards = version_of(found), found[len(ranges) :]
        if self._version is None:
            self._version, self._is_current = version, version is not None
            if [bytes(now) for now in guards] != [then for _, then in self._guards]:
                raise ValueChangedError
        # A response to a range past the end has no version; this matters only if the version is that of a cached index.
        elif version != self._version and not (version is None and self._is_current):
            raise ValueChangedError
        else:
            self._is_current = self._is_current or version is not None
        return found[: len(ranges)]

    def read_index(
        self, layout: ShardLayout, within: ByteRange, inners: Iterable[Part]
    ) -> Generator[Sequence[ByteRange], Sequence[Buffer], ShardIndex]:
        """Read the index of the shard in the range `within`, to read `inners`.

        A cached index is used if it has entries for some of `inners`: the response with their data validates the index. An
        index that was requested is cached if the version is known; else its bytes are kept as a guard.
        """
        known = None if self._indexes is None else self._indexes.get(self._key, within)
        if (
            known is not None
            and self._version in (None, known.version)
            and any(known.entries[inner.coords][0] != MISSING for inner in inners)
        ):
            self._version = known.version
            return known.entries
        at = shift(within, layout.index_range)
        (encoded,) = yield [at]
        index = layout.parse_index(encoded)
        if self._version is not None and self._indexes is not None:
            self._indexes.keep(self._key, within, CachedIndex(index, self._version))
        elif self._version is None and not self._remote:
            self._guards.append((at, bytes(encoded)))
        return index

    def last_byte(self, layout: ShardLayout, within: ByteRange, entries: Sequence[ByteRange]) -> ByteRange | None:
        """Return the byte to request with the inner chunks at `entries`, where only this shows that the shard is that long."""
        return None if self._remote or within != WHOLE or not entries else layout.last_byte(entries)

    def check_missing(self) -> None:
        """Raise `ValueChangedError` if a value that was read before is now missing."""
        if self._version is not None or self._guards:
            raise ValueChangedError
