"""A write-through cache of encoded bytes over a store.

The cache keeps the values and byte ranges that were read or written in `cache_store` (memory, or a directory on disk). One
`fetch` requests all cache misses from the wrapped store. An entry older than `max_age_seconds` is revalidated: a request
without a body compares its version (ETag). ZEP 1 calls this a runtime storage transformer.

A change by another writer is noticed at revalidation: with the default, "infinity", never; with 0, at every read, all keys of
a `fetch` at once. Missing keys are not cached. The entries that terminated processes left in a directory are deleted.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, cast

from tessarr.common.segments import Piece, Stored
from tessarr.stores.base import ANY, Any_, Fetch, Listing, Store, Version, shared_copy
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Fetched, Unchanged, version_of
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.protocols import Remote
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import Buffer, ByteRange

_List = list
_Slot: TypeAlias = tuple[str, ByteRange | None]


class CacheInfo(NamedTuple):
    """The options of a cache, and its present size."""

    cache_store_type: str
    max_age_seconds: float | Literal["infinity"]
    max_size: int | None
    current_size: int
    cache_set_data: bool
    tracked_keys: int


class CacheStatistics(NamedTuple):
    """The counters of a cache. `revalidations` are hits whose version was compared with the store's."""

    hits: int
    misses: int
    evictions: int
    revalidations: int

    @property
    def hit_rate(self) -> float:
        """Hits per request; 0 before the first."""
        total = self.hits + self.misses
        return self.hits / total if total else 0.0


class _Entry(NamedTuple):
    nbytes: int
    stored_at: float
    version: Version | None
    name: str
    """The key in the cache store."""


class _CacheState:
    """The entries and counters of a cache, shared with its read-only copies, which have the same cache store."""

    def __init__(self) -> None:
        self.reset()
        _STATES.add(self)

    def reset(self) -> None:
        """Empty the cache, and make a new lock."""
        self.lock = threading.RLock()
        self.entries: OrderedDict[_Slot, _Entry] = OrderedDict()
        self.slots: dict[str, set[_Slot]] = {}
        self.writes: dict[str, int] = {}
        """Writes started and completed, per key: a value that was read before one of them must not be inserted after it."""
        self.in_flight: dict[str, int] = {}
        """Writes in flight, per key: a concurrent read may return the old or the new value, and is not cached."""
        self.size = self.hits = self.misses = self.evictions = self.revalidations = 0
        self.orphans_removed = False
        """Whether the orphaned entries in the cache store were removed."""
        self._owner, self._number = "", 0

    def new_name(self) -> str:
        """Return an unused key for the cache store, which unpickled caches and forked children share with this one."""
        pid = f"{os.getpid():x}-"
        if not self._owner.startswith(pid):
            self._owner = pid + os.urandom(8).hex()
        self._number += 1
        return f"{self._owner}-{self._number:x}"


_NAME_PATTERN = re.compile(r"([0-9a-f]+)-[0-9a-f]{16}-[0-9a-f]+").fullmatch


def _is_orphaned(name: str) -> bool:
    """Return whether `name` was made by `_CacheState.new_name` in a process of this machine that has terminated."""
    found = _NAME_PATTERN(name)
    if found is None or os.name != "posix":
        return False
    try:
        os.kill(int(found[1], 16), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    return False


_STATES: weakref.WeakSet[_CacheState] = weakref.WeakSet()


def _after_fork() -> None:
    """Make new locks in a forked child, where no thread releases a lock that another thread of the parent held."""
    for state in [*_STATES]:
        state.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class CacheStore(WrapperStore):
    """A cache of encoded bytes over `store`, kept in `cache_store` (`MemoryStore` by default).

    `cache_store` belongs to the cache: no other code may write to it. `max_size` is in bytes; the least recently used
    entries are evicted first. `cache_set_data`: written values are cached too.

    Example:
        >>> cache = CacheStore(MemoryStore(), max_size=1000)
        >>> _ = cache.set("a", b"0123")
        >>> bytes(cache.get("a")), cache.cache_stats().hits
        (b'0123', 1)
    """

    def __init__(
        self,
        store: Store,
        *,
        cache_store: Store | None = None,
        max_age_seconds: float | Literal["infinity"] = "infinity",
        max_size: int | None = None,
        cache_set_data: bool = True,
    ) -> None:
        super().__init__(store)
        self.cache_store = cache_store if cache_store is not None else MemoryStore()
        self.max_age_seconds: float | Literal["infinity"] = max_age_seconds
        self.max_size = max_size
        self.cache_set_data = cache_set_data
        self._state = _CacheState()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_state"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self.cache_store = MemoryStore() if isinstance(self.cache_store, MemoryStore) else self.cache_store
        self._state = _CacheState()

    __copy__ = shared_copy

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def cache_info(self) -> CacheInfo:
        """Return the options of the cache, and its present size."""
        kind, state = type(self.cache_store).__name__, self._state
        with state.lock:
            return CacheInfo(
                kind, self.max_age_seconds, self.max_size, state.size, self.cache_set_data, len(state.slots)
            )

    def cache_stats(self) -> CacheStatistics:
        """Return the counters of the cache since it was made or cleared."""
        state = self._state
        with state.lock:
            return CacheStatistics(state.hits, state.misses, state.evictions, state.revalidations)

    def clear_cache(self) -> None:
        """Remove all entries, and reset the statistics. The wrapped store is not changed."""
        state = self._state
        with state.lock:
            names = [entry.name for entry in state.entries.values()]
            state.entries.clear()
            state.slots.clear()
            state.size = state.hits = state.misses = state.evictions = state.revalidations = 0
            state.writes = {key: number + 1 for key, number in state.writes.items()}
        self.cache_store.delete_many(names)

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = self.fetch([Fetch(key, None if byte_range is None else (byte_range,))])[0]
        return None if found is None else found[0]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return self.fetch([Fetch(key, tuple(ranges))])[0]

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        requests = [Fetch(key, None if part is None else (part,)) for key, part in key_ranges]
        return [None if parts is None else parts[0] for parts in self.fetch(requests)]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Read cache hits from the cache store, and all misses from the wrapped store in one `fetch`."""
        now = self._current_versions({request.key for request in requests})
        results = [self._lookup_request(request, now) for request in requests]
        wanted = [request for request, found in zip(requests, results, strict=True) if found is None]
        if wanted:
            writes = self._writes_of(wanted)
            versions = self._versions_before_fetch(wanted)
            self._fill(results, wanted, self.store.fetch(wanted), versions, writes)
        return results

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        if self.max_age_seconds != "infinity" or not isinstance(self.cache_store, MemoryStore):
            return await super().fetch_async(requests)  # a lookup may wait for I/O
        results = [self._lookup_request(request, {}) for request in requests]
        wanted = [request for request, found in zip(requests, results, strict=True) if found is None]
        if wanted:
            writes = self._writes_of(wanted)
            self._fill(results, wanted, await self.store.fetch_async(wanted), {}, writes)
        return results

    def _versions_before_fetch(self, requests: Sequence[Fetch]) -> dict[str, Version | None]:
        """Request the versions from a store whose responses have none, unless entries never expire.

        It precedes the request of the values: an older version with newer bytes only costs another fetch.
        """
        if self.max_age_seconds == "infinity" or isinstance(self.store, Remote):
            return {}
        return {request.key: self.store.version(request.key) for request in requests}

    def _writes_of(self, requests: Sequence[Fetch]) -> dict[str, int]:
        with self._state.lock:
            return {request.key: self._state.writes.get(request.key, 0) for request in requests}

    def _fill(
        self,
        results: _List[_List[Buffer] | None],
        wanted: Sequence[Fetch],
        answers: Sequence[_List[Buffer] | None],
        versions: Mapping[str, Version | None],
        writes: dict[str, int],
    ) -> None:
        """Replace each ``None`` in `results` by its response in `answers`, and insert the responses into the cache."""
        empty = [number for number, found in enumerate(results) if found is None]
        for number, (key, ranges), parts in zip(empty, wanted, answers, strict=True):
            results[number] = parts
            version = versions.get(key) if parts is None else version_of(parts) or versions.get(key)
            for part, body in zip((None,) if ranges is None else ranges, parts or (), strict=parts is not None):
                self._insert((key, part), body, version, writes[key])

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = (await self.fetch_async([Fetch(key, None if byte_range is None else (byte_range,))]))[0]
        return None if found is None else found[0]

    def _current_versions(self, keys: Iterable[str]) -> dict[str, Version | None]:
        """Request the present versions of the expired entries of `keys`, concurrently."""
        if self.max_age_seconds == "infinity":
            return {}
        with self._state.lock:
            cached = [(key, self._state.entries[slot]) for key in keys for slot in self._state.slots.get(key, ())]
        old = [*dict.fromkeys(key for key, entry in cached if entry.version is not None and self._is_expired(entry))]
        if not isinstance(self.store, Remote):
            return {key: self.store.version(key) for key in old}
        from tessarr.stores.remote.loop import run_concurrently

        calls: _List[Callable[[], Version | None]] = [functools.partial(self.store.version, key) for key in old]
        return dict(zip(old, run_concurrently(calls), strict=True))

    def _is_expired(self, entry: _Entry) -> bool:
        return self.max_age_seconds != "infinity" and time.monotonic() - entry.stored_at > self.max_age_seconds

    def _lookup_request(self, request: Fetch, now: Mapping[str, Version | None]) -> _List[Buffer] | None:
        found: _List[Buffer | None] = []
        writes = self._state.writes.get(request.key, 0)
        for part in (None,) if request.ranges is None else request.ranges:
            found.append(self._lookup(request.key, part, now))
            if found[-1] is None:
                break
        with self._state.lock:
            # If a write began or ended meanwhile, the parts may be of different versions.
            if found and (found[-1] is None or self._state.writes.get(request.key, 0) != writes):
                self._state.misses += 1
                return None
            self._state.hits += 1
        return cast("list[Buffer]", found)

    def _lookup(self, key: str, part: ByteRange | None, now: Mapping[str, Version | None]) -> Buffer | None:
        """Return the bytes of one slot, from its entry or from the entry of the whole value; ``None``: a cache miss."""
        for slot, cut in (((key, part), None), ((key, None), part)):
            with self._state.lock:
                entry = self._state.entries.get(slot)
                if entry is None:
                    continue
                self._state.entries.move_to_end(slot)
            if not self._is_fresh(key, slot, entry, now):
                return None
            body = self.cache_store.get(entry.name, cut)
            if body is not None:
                return body
            self._remove(slot)
        return None

    def _is_fresh(self, key: str, slot: _Slot, entry: _Entry, now: Mapping[str, Version | None]) -> bool:
        if key not in now and not self._is_expired(entry):
            return True
        if entry.version is not None and now.get(key) == entry.version:
            with self._state.lock:
                self._state.revalidations += 1
                if self._state.entries.get(slot) is entry:
                    self._state.entries[slot] = entry._replace(stored_at=time.monotonic())
            return True
        self._invalidate(key)
        return False

    def _invalidate_cached(self, prefix: str, is_stale: Callable[[str], bool]) -> None:
        super()._invalidate_cached(prefix, is_stale)
        self._invalidating([key for key in self._keys_with(prefix) if is_stale(key[len(prefix) :])], lambda: None)

    # -- forwarded, not cached -----------------------------------------------------------------------------------

    def get_if_changed(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        self._invalidating([key], lambda: None)
        return self.store.get_if_changed(key, version)

    async def get_if_changed_async(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        self._invalidating([key], lambda: None)
        return await self.store.get_if_changed_async(key, version)

    def exists(self, key: str) -> bool:
        return self.store.exists(key)

    async def exists_async(self, key: str) -> bool:
        return await self.store.exists_async(key)

    def getsize(self, key: str) -> int | None:
        return self.store.getsize(key)

    async def getsize_async(self, key: str) -> int | None:
        return await self.store.getsize_async(key)

    def getsize_prefix(self, prefix: str) -> int:
        return self.store.getsize_prefix(prefix)

    async def getsize_prefix_async(self, prefix: str) -> int:
        return await self.store.getsize_prefix_async(prefix)

    _stamp_below = WrapperStore._stamp_of_wrapped

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        return await self.store.list_prefix_async(prefix)

    async def list_dir_async(self, prefix: str) -> Listing:
        return await self.store.list_dir_async(prefix)

    # -- entries -----------------------------------------------------------------------------------------------

    def _insert(self, slot: _Slot, body: Buffer, version: Version | None, writes: int) -> None:
        nbytes = byte_view(body).nbytes
        if self.max_size is not None and nbytes > self.max_size:
            return
        with self._state.lock:
            if self._state.writes.get(slot[0], 0) != writes or slot[0] in self._state.in_flight:
                return
            name = self._state.new_name()
            first, self._state.orphans_removed = not self._state.orphans_removed, True
        if first and isinstance(self.cache_store, LocalStore):
            self.cache_store.delete_many(key for key in [*self.cache_store.list()] if _is_orphaned(key))
        self.cache_store.set(name, body)
        with self._state.lock:
            late = self._state.writes.get(slot[0], 0) != writes or slot[0] in self._state.in_flight
            if not late:
                self._remove(slot)
                self._state.entries[slot] = _Entry(nbytes, time.monotonic(), version, name)
                self._state.slots.setdefault(slot[0], set()).add(slot)
                self._state.size += nbytes
                while self.max_size is not None and self._state.size > self.max_size:
                    self._state.evictions += 1
                    self._remove(next(iter(self._state.entries)))
        if late:
            self.cache_store.delete(name)

    def _remove(self, slot: _Slot) -> None:
        with self._state.lock:
            entry = self._state.entries.pop(slot, None)
            if entry is None:
                return
            self._state.size -= entry.nbytes
            slots = self._state.slots[slot[0]]
            slots.discard(slot)
            if not slots:
                del self._state.slots[slot[0]]
        self.cache_store.delete(entry.name)

    def _invalidate(self, key: str) -> None:
        with self._state.lock:
            for slot in [*self._state.slots.get(key, ())]:
                self._remove(slot)

    def _count_write(self, key: str, in_flight: int) -> int:
        """Record that a write of `key` begins (`in_flight` is 1) or ends (-1), so that concurrent reads are not cached."""
        with self._state.lock:
            number = self._state.writes[key] = self._state.writes.get(key, 0) + 1
            self._state.in_flight[key] = self._state.in_flight.get(key, 0) + in_flight
            if not self._state.in_flight[key]:
                del self._state.in_flight[key]
            self._invalidate(key)
            return number

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        begun = self._count_write(key, 1)
        try:
            version = self.store._set_if_match(key, value, if_match)
        finally:
            ended = self._count_write(key, -1)
        if self.cache_set_data and ended == begun + 1:  # else another write was in flight, and may have been later
            self._insert((key, None), value, version, ended)
        return version

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        return bool(self._invalidating([key], lambda: self.store.set_if_not_exists(key, value)))

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        parts = [*key_start_values]
        self._invalidating([key for key, _, _ in parts], lambda: self.store.set_partial_values(parts))

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._invalidating([key], lambda: self.store.update(key, change))

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        self._invalidating([key], lambda: self.store.splice(key, change))

    def delete_if(self, key: str, version: Version | None) -> None:
        self._check_writable(key)
        self._invalidating([key], lambda: WrapperStore.delete_if(self, key, version))

    def delete(self, key: str) -> None:
        self._invalidating([key], lambda: self.store.delete(key))

    def delete_many(self, keys: Iterable[str]) -> None:
        every = [*keys]
        self._invalidating(every, lambda: self.store.delete_many(every))

    def delete_prefix(self, prefix: str) -> None:
        self._invalidating(self._keys_with(prefix), lambda: self.store.delete_prefix(prefix))

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._invalidating([*self._keys_with(prefix), *items], lambda: self.store.replace_prefix(prefix, items))

    def _keys_with(self, prefix: str) -> _List[str]:
        with self._state.lock:
            return [key for key in {*self._state.slots, *self._state.writes} if key.startswith(prefix)]

    def _invalidating(self, keys: Sequence[str], write: Callable[[], object]) -> object:
        """Call `write`, and invalidate the entries of `keys` before and after."""
        for key in keys:
            self._count_write(key, 1)
        try:
            return write()
        finally:
            for key in keys:
                self._count_write(key, -1)


class LRUStoreCache(CacheStore):
    """zarr-python 2's name of the cache: at most `max_size` bytes (``None``: no limit) in memory."""

    def __init__(self, store: Store, max_size: int | None = None) -> None:
        super().__init__(store, max_size=max_size)

    @property
    def hits(self) -> int:
        """The number of cache hits."""
        return self.cache_stats().hits

    @property
    def misses(self) -> int:
        """The number of cache misses."""
        return self.cache_stats().misses

    def invalidate(self) -> None:
        """Remove all entries."""
        self.clear_cache()

    invalidate_values = invalidate

    def invalidate_keys(self) -> None:
        """Do nothing: listings are not cached."""
