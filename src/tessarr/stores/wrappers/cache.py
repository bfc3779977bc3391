"""Caches of encoded bytes, as layers over a store.

A cache layer answers from `cache_store` (memory, or a directory on disk) what it has read or written before, whole
values and byte ranges alike; asks the store below for the rest in one wave; and after `max_age_seconds` asks only
whether the version (ETag) is still the same. Writes go through. ZEP 1 calls this a runtime storage transformer.

What other writers change is seen when an entry is older than `max_age_seconds`: with the default, "infinity", not at all;
with 0 every read is checked by requests without a body, all keys of a wave at once. Missing keys are never remembered. A
directory as `cache_store` is rid of what processes left there that are no more.
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
from tessarr.stores.fetch import version_of
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.protocols import Remote, forwarding
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import Buffer, ByteRange

_List: TypeAlias = list
_Slot: TypeAlias = tuple[str, ByteRange | None]


class CacheInfo(NamedTuple):
    """How a cache is set, and how full it is."""

    cache_store_type: str
    max_age_seconds: float | Literal["infinity"]
    max_size: int | None
    current_size: int
    cache_set_data: bool
    tracked_keys: int


class CacheStatistics(NamedTuple):
    """What a cache has done. `revalidations` are hits that needed a request to be sure."""

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
    born: float
    version: Version | None
    name: str
    """The key in the cache store."""


class _Kept:
    """What a cache holds and counts; one object for a cache and its read-only twins, which share the cache store."""

    def __init__(self) -> None:
        self.start()
        _ALL.add(self)

    def start(self) -> None:
        """Empty the cache, and make a new lock."""
        self.guard = threading.RLock()
        self.entries: OrderedDict[_Slot, _Entry] = OrderedDict()
        self.slots: dict[str, set[_Slot]] = {}
        self.writes: dict[str, int] = {}
        """Writes begun and done, per key: a value read before one of them must not be kept after it."""
        self.underway: dict[str, int] = {}
        """Writes under way, per key: what is read meanwhile is of the old value or of the new one, and not kept."""
        self.size = self.hits = self.misses = self.evictions = self.revalidations = 0
        self.swept = False
        """What others left in the cache store has been removed."""
        self._owner, self._number = "", 0

    def new_name(self) -> str:
        """Return an unused key for the cache store, which unpickled caches and forked children share with this one."""
        pid = f"{os.getpid():x}-"
        if not self._owner.startswith(pid):
            self._owner = pid + os.urandom(8).hex()
        self._number += 1
        return f"{self._owner}-{self._number:x}"


_NAME = re.compile(r"([0-9a-f]+)-[0-9a-f]{16}-[0-9a-f]+").fullmatch


def _is_left_over(name: str) -> bool:
    """Whether `name` was made by `_Kept.new_name` in a process of this machine that is no more."""
    found = _NAME(name)
    if found is None or os.name != "posix":
        return False
    try:
        os.kill(int(found[1], 16), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    return False


_ALL: weakref.WeakSet[_Kept] = weakref.WeakSet()


def _after_fork() -> None:
    """Make new locks in a forked child: no thread there releases a lock that another thread of the parent held."""
    for kept in [*_ALL]:
        kept.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class CacheStore(WrapperStore):
    """A cache of encoded bytes over `store`, kept in `cache_store` (`MemoryStore` by default).

    `cache_store` belongs to the cache: nothing else may write to it. `max_size` is in bytes; the least recently used
    entries leave first. `cache_set_data` keeps what is written, too.

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
        self.max_age_seconds = max_age_seconds
        self.max_size = max_size
        self.cache_set_data = cache_set_data
        self._kept = _Kept()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state)
        self.cache_store = MemoryStore() if isinstance(self.cache_store, MemoryStore) else self.cache_store
        self._kept = _Kept()

    __copy__ = shared_copy

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def cache_info(self) -> CacheInfo:
        """Return the options of the cache, and its present size."""
        kind = type(self.cache_store).__name__
        with self._kept.guard:
            return CacheInfo(
                kind, self.max_age_seconds, self.max_size, self._kept.size, self.cache_set_data, len(self._kept.slots)
            )

    def cache_stats(self) -> CacheStatistics:
        """Return the counters of the cache since it was made or cleared."""
        with self._kept.guard:
            return CacheStatistics(self._kept.hits, self._kept.misses, self._kept.evictions, self._kept.revalidations)

    def clear_cache(self) -> None:
        """Remove all entries, and reset the statistics. The store below is not changed."""
        with self._kept.guard:
            names = [entry.name for entry in self._kept.entries.values()]
            writes = self._kept.writes
            self._kept.entries.clear()
            self._kept.slots.clear()
            self._kept.size = self._kept.hits = self._kept.misses = self._kept.evictions = self._kept.revalidations = 0
            self._kept.writes = {key: number + 1 for key, number in writes.items()}
        self.cache_store.delete_many(names)

    # -- reading -----------------------------------------------------------------------------------------------

    @forwarding
    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = self.fetch([Fetch(key, None if byte_range is None else (byte_range,))])[0]
        return None if found is None else found[0]

    @forwarding
    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return self.fetch([Fetch(key, tuple(ranges))])[0]

    @forwarding
    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        requests = [Fetch(key, None if part is None else (part,)) for key, part in key_ranges]
        return [None if parts is None else parts[0] for parts in self.fetch(requests)]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Read cache hits from the cache, and all misses from the store below in one `fetch`."""
        now = self._versions_now({request.key for request in requests})
        results = [self._cached(request, now) for request in requests]
        wanted = [request for request, found in zip(requests, results, strict=True) if found is None]
        if wanted:
            writes = self._writes_of(wanted)
            versions = self._versions_before(wanted)
            self._fill(results, wanted, self.store.fetch(wanted), versions, writes)
        return results

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        if self.max_age_seconds != "infinity" or not isinstance(self.cache_store, MemoryStore):
            return await super().fetch_async(requests)  # looking into the cache may wait
        results = [self._cached(request, {}) for request in requests]
        wanted = [request for request, found in zip(requests, results, strict=True) if found is None]
        if wanted:
            writes = self._writes_of(wanted)
            self._fill(results, wanted, await self.store.fetch_async(wanted), {}, writes)
        return results

    def _versions_before(self, requests: Sequence[Fetch]) -> dict[str, Version | None]:
        """The versions of values in a store whose responses name none, asked for before the values are: an older version
        with newer bytes is merely fetched again. None are needed for a cache without an age."""
        if self.max_age_seconds == "infinity" or isinstance(self.store, Remote):
            return {}
        return {request.key: self.store.version(request.key) for request in requests}

    def _writes_of(self, requests: Sequence[Fetch]) -> dict[str, int]:
        with self._kept.guard:
            return {request.key: self._kept.writes.get(request.key, 0) for request in requests}

    def _fill(
        self,
        results: _List[_List[Buffer] | None],
        wanted: Sequence[Fetch],
        answers: Sequence[_List[Buffer] | None],
        versions: Mapping[str, Version | None],
        writes: dict[str, int],
    ) -> None:
        """Put `answers` into the empty places of `results`, and into the cache."""
        empty = [number for number, found in enumerate(results) if found is None]
        for number, (key, ranges), parts in zip(empty, wanted, answers, strict=True):
            results[number] = parts
            version = versions.get(key) if parts is None else version_of(parts) or versions.get(key)
            for part, body in zip((None,) if ranges is None else ranges, parts or (), strict=parts is not None):
                self._keep((key, part), body, version, writes[key])

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = (await self.fetch_async([Fetch(key, None if byte_range is None else (byte_range,))]))[0]
        return None if found is None else found[0]

    def _versions_now(self, keys: Iterable[str]) -> dict[str, Version | None]:
        """The present versions of those `keys` that are kept and too old, asked for at once."""
        if self.max_age_seconds == "infinity":
            return {}
        with self._kept.guard:
            kept = [(key, self._kept.entries[slot]) for key in keys for slot in self._kept.slots.get(key, ())]
        old = [*dict.fromkeys(key for key, entry in kept if entry.version is not None and self._is_old(entry))]
        if not isinstance(self.store, Remote):
            return {key: self.store.version(key) for key in old}
        from tessarr.stores.remote.loop import run_side_by_side

        asked: _List[Callable[[], Version | None]] = [functools.partial(self.store.version, key) for key in old]
        return dict(zip(old, run_side_by_side(asked), strict=True))

    def _is_old(self, entry: _Entry) -> bool:
        return self.max_age_seconds != "infinity" and time.monotonic() - entry.born > self.max_age_seconds

    def _cached(self, request: Fetch, now: Mapping[str, Version | None]) -> _List[Buffer] | None:
        found: _List[Buffer | None] = []
        writes = self._kept.writes.get(request.key, 0)
        for part in (None,) if request.ranges is None else request.ranges:
            found.append(self._lookup(request.key, part, now))
            if found[-1] is None:
                break
        with self._kept.guard:
            # After a write in between, some parts may be of the old value and some of the new one.
            if found and (found[-1] is None or self._kept.writes.get(request.key, 0) != writes):
                self._kept.misses += 1
                return None
            self._kept.hits += 1
        return cast("list[Buffer]", found)

    def _lookup(self, key: str, part: ByteRange | None, now: Mapping[str, Version | None]) -> Buffer | None:
        """The bytes of one slot, out of its own entry or that of the whole value."""
        for slot, cut in (((key, part), None), ((key, None), part)):
            with self._kept.guard:
                entry = self._kept.entries.get(slot)
                if entry is None:
                    continue
                self._kept.entries.move_to_end(slot)
            if not self._is_fresh(key, slot, entry, now):
                return None
            body = self.cache_store.get(entry.name, cut)
            if body is not None:
                return body
            self._forget(slot)
        return None

    def _is_fresh(self, key: str, slot: _Slot, entry: _Entry, now: Mapping[str, Version | None]) -> bool:
        if key not in now and not self._is_old(entry):
            return True
        if entry.version is not None and now.get(key) == entry.version:
            with self._kept.guard:
                self._kept.revalidations += 1
                if self._kept.entries.get(slot) is entry:
                    self._kept.entries[slot] = entry._replace(born=time.monotonic())
            return True
        self._forget_key(key)
        return False

    # -- what is not cached --------------------------------------------------------------------------------------

    def exists(self, key: str) -> bool:
        return self.store.exists(key)

    async def exists_async(self, key: str) -> bool:
        return await self.store.exists_async(key)

    @forwarding
    def getsize(self, key: str) -> int | None:
        return self.store.getsize(key)

    async def getsize_async(self, key: str) -> int | None:
        return await self.store.getsize_async(key)

    def getsize_prefix(self, prefix: str) -> int:
        return self.store.getsize_prefix(prefix)

    async def getsize_prefix_async(self, prefix: str) -> int:
        return await self.store.getsize_prefix_async(prefix)

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        return await self.store.list_prefix_async(prefix)

    async def list_dir_async(self, prefix: str) -> Listing:
        return await self.store.list_dir_async(prefix)

    # -- what is kept ------------------------------------------------------------------------------------------

    def _keep(self, slot: _Slot, body: Buffer, version: Version | None, writes: int) -> None:
        nbytes = byte_view(body).nbytes
        if self.max_size is not None and nbytes > self.max_size:
            return
        with self._kept.guard:
            if self._kept.writes.get(slot[0], 0) != writes or slot[0] in self._kept.underway:
                return
            name = self._kept.new_name()
            first, self._kept.swept = not self._kept.swept, True
        if first and isinstance(self.cache_store, LocalStore):
            self.cache_store.delete_many(key for key in [*self.cache_store.list()] if _is_left_over(key))
        self.cache_store.set(name, body)
        with self._kept.guard:
            late = self._kept.writes.get(slot[0], 0) != writes or slot[0] in self._kept.underway
            if not late:
                self._forget(slot)
                self._kept.entries[slot] = _Entry(nbytes, time.monotonic(), version, name)
                self._kept.slots.setdefault(slot[0], set()).add(slot)
                self._kept.size += nbytes
                while self.max_size is not None and self._kept.size > self.max_size:
                    self._kept.evictions += 1
                    self._forget(next(iter(self._kept.entries)))
        if late:
            self.cache_store.delete(name)

    def _forget(self, slot: _Slot) -> None:
        with self._kept.guard:
            entry = self._kept.entries.pop(slot, None)
            if entry is None:
                return
            self._kept.size -= entry.nbytes
            slots = self._kept.slots[slot[0]]
            slots.discard(slot)
            if not slots:
                del self._kept.slots[slot[0]]
        self.cache_store.delete(entry.name)

    def _forget_key(self, key: str) -> None:
        with self._kept.guard:
            for slot in [*self._kept.slots.get(key, ())]:
                self._forget(slot)

    def _written(self, key: str, underway: int) -> int:
        """Record that a write of `key` begins (`underway` is 1) or ends (-1), so that concurrent reads are not cached."""
        with self._kept.guard:
            number = self._kept.writes[key] = self._kept.writes.get(key, 0) + 1
            self._kept.underway[key] = self._kept.underway.get(key, 0) + underway
            if not self._kept.underway[key]:
                del self._kept.underway[key]
            self._forget_key(key)
            return number

    # -- writing -----------------------------------------------------------------------------------------------

    @forwarding
    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        begun = self._written(key, 1)
        try:
            version = self.store._set_as_asked(key, value, if_match)
        finally:
            ended = self._written(key, -1)
        if self.cache_set_data and ended == begun + 1:  # else another write may have come after this one
            self._keep((key, None), value, version, ended)
        return version

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        return bool(self._forgetting([key], lambda: self.store.set_if_not_exists(key, value)))

    @forwarding
    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        parts = [*key_start_values]
        self._forgetting([key for key, _, _ in parts], lambda: self.store.set_partial_values(parts))

    @forwarding
    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._forgetting([key], lambda: self.store.update(key, change))

    @forwarding
    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        self._forgetting([key], lambda: self.store.splice(key, change))

    @forwarding
    def delete_if(self, key: str, version: Version | None) -> None:
        self._check_writable(key)
        self._forgetting([key], lambda: WrapperStore.delete_if(self, key, version))

    @forwarding
    def delete(self, key: str) -> None:
        self._forgetting([key], lambda: self.store.delete(key))

    @forwarding
    def delete_many(self, keys: Iterable[str]) -> None:
        every = [*keys]
        self._forgetting(every, lambda: self.store.delete_many(every))

    def delete_prefix(self, prefix: str) -> None:
        self._forgetting(self._tracked(prefix), lambda: self.store.delete_prefix(prefix))

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._forgetting([*self._tracked(prefix), *items], lambda: self.store.replace_prefix(prefix, items))

    def _tracked(self, prefix: str) -> _List[str]:
        with self._kept.guard:
            return [key for key in {*self._kept.slots, *self._kept.writes} if key.startswith(prefix)]

    def _forgetting(self, keys: Sequence[str], write: Callable[[], object]) -> object:
        """Call `write`, and invalidate the entries of `keys` before and after."""
        for key in keys:
            self._written(key, 1)
        try:
            return write()
        finally:
            for key in keys:
                self._written(key, -1)


class LRUStoreCache(CacheStore):
    """zarr-python 2's cache by its name: at most `max_size` bytes (``None``: without limit) in memory."""

    def __init__(self, store: Store, max_size: int | None = None) -> None:
        super().__init__(store, max_size=max_size)

    @property
    def hits(self) -> int:
        """Requests answered from the cache."""
        return self.cache_stats().hits

    @property
    def misses(self) -> int:
        """Requests that went to the store below."""
        return self.cache_stats().misses

    def invalidate(self) -> None:
        """Forgets everything."""
        self.clear_cache()

    def invalidate_values(self) -> None:
        """Forgets everything."""
        self.clear_cache()

    def invalidate_keys(self) -> None:
        """Does nothing: listings are not cached."""
