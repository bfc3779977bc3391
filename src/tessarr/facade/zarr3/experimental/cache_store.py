"""zarr-python's ``zarr.experimental.cache_store``: keep values of a slow store in a fast one.

`tessarr.storage.CacheStore` is tessarr's own, which checks versions; this one has zarr-python's interface and rules: an entry
is used until `max_age_seconds` have passed since it was stored, and the least recently used entries leave first.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, NamedTuple

from tessarr.facade.zarr3.abc.store import ByteRequest, Store
from tessarr.facade.zarr3.storage._wrapper import WrapperStore

_Entry = tuple[str, ByteRequest | None]
"""A key, and the range of it that was read; ``None``: all of it."""


class _Kept(NamedTuple):
    size: int
    since: float
    """When it was stored, on the monotonic clock."""
    part: object
    """The buffer of a range; whole values are in the cache store."""


class _State:
    """What stores over one cache share."""

    def __init__(self) -> None:
        self.entries: OrderedDict[_Entry, _Kept] = OrderedDict()
        """In the order of their last use."""
        self.changes: dict[str, int] = {}
        """Key → number of changes through this cache, so that a value read before a change is not kept after it."""
        self.nbytes = self.hits = self.misses = self.evictions = 0

    def forget(self, entry: _Entry) -> None:
        """Remove an entry from the account."""
        found = self.entries.pop(entry, None)
        self.nbytes -= found.size if found is not None else 0


class CacheStore(WrapperStore[Store]):
    """Read values of `store` through `cache_store`."""

    def __init__(
        self,
        store: Store,
        *,
        cache_store: Store,
        max_age_seconds: float | str = "infinity",
        max_size: int | None = None,
        cache_set_data: bool = True,
    ) -> None:
        """Wrap `store`. `max_size` bounds the cached bytes (``None``: no bound); `cache_set_data` keeps written values too.

        Raises `ValueError` for a cache that cannot delete, and an age that is neither a number nor "infinity".
        """
        super().__init__(store)
        if not cache_store.supports_deletes:
            raise ValueError(
                f"The provided cache store {cache_store} does not support deletes, by which entries leave it"
            )
        if isinstance(max_age_seconds, str) and max_age_seconds != "infinity":
            raise ValueError(f"max_age_seconds string value must be 'infinity', not {max_age_seconds!r}")
        self._cache = cache_store
        self.max_age_seconds = max_age_seconds
        self.max_size = max_size
        self.cache_set_data = cache_set_data
        self._state = _State()

    def with_read_only(self, read_only: bool = False) -> CacheStore:
        """Wrap the wrapped store's ``with_read_only``, over the same cache."""
        made = type(self)(
            self._store.with_read_only(read_only),
            cache_store=self._cache,
            max_age_seconds=self.max_age_seconds,
            max_size=self.max_size,
            cache_set_data=self.cache_set_data,
        )
        made._state = self._state
        return made

    # -- reading -----------------------------------------------------------------------------------------------

    async def get(self, key: str, prototype: Any, byte_range: ByteRequest | None = None) -> Any:
        entry, state = (key, byte_range), self._state
        if self._is_key_fresh(entry):
            found = await self._cache.get(key, prototype) if byte_range is None else state.entries[entry].part
            if found is not None:
                state.hits += 1
                if entry in state.entries:
                    state.entries.move_to_end(entry)
                return found
        state.misses += 1
        changes = state.changes.get(key, 0)
        value = await super().get(key, prototype, byte_range)
        if value is None:
            await self._drop(entry)
        elif state.changes.get(key, 0) == changes:
            await self._keep(entry, value)
        return value

    def _is_key_fresh(self, entry: str | _Entry) -> bool:
        """Whether an entry, or the whole value of a key, may be used."""
        entry = (entry, None) if isinstance(entry, str) else entry
        kept = self._state.entries.get(entry)
        if isinstance(self.max_age_seconds, str):
            return kept is not None or entry[1] is None
        return kept is not None and time.monotonic() - kept.since < self.max_age_seconds

    async def _keep(self, entry: _Entry, value: Any) -> None:
        state, size = self._state, len(value)
        state.forget(entry)
        if self.max_size is not None and size > self.max_size:
            await self._drop(entry)
            return
        while self.max_size is not None and state.entries and state.nbytes + size > self.max_size:
            oldest = next(iter(state.entries))
            state.evictions += 1
            await self._drop(oldest)
        state.entries[entry] = _Kept(size, time.monotonic(), None if entry[1] is None else value)
        state.nbytes += size
        if entry[1] is None:
            await self._cache.set(entry[0], value)

    async def _drop(self, entry: _Entry) -> None:
        self._state.forget(entry)
        if entry[1] is None:
            await self._cache.delete(entry[0])

    # -- writing -----------------------------------------------------------------------------------------------

    async def _changed(self, key: str) -> None:
        """Remove what is cached of a key whose value changes."""
        self._state.changes[key] = self._state.changes.get(key, 0) + 1
        for entry in [entry for entry in self._state.entries if entry[0] == key]:
            self._state.forget(entry)
        await self._cache.delete(key)

    async def set(self, key: str, value: Any) -> None:
        await self._changed(key)
        await super().set(key, value)
        await self._changed(key)
        if self.cache_set_data:
            await self._keep((key, None), value)

    async def delete(self, key: str) -> None:
        await super().delete(key)
        await self._changed(key)

    async def delete_dir(self, prefix: str) -> None:
        await super().delete_dir(prefix)
        below = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        for key in {key for key, _ in self._state.entries if key.startswith(below)}:
            await self._changed(key)

    async def clear(self) -> None:
        await super().clear()
        await self.clear_cache()

    # -- the cache ---------------------------------------------------------------------------------------------

    def cache_info(self) -> dict[str, object]:
        """Describe the cache: its class, its limits, and what is in it."""
        return {
            "cache_store_type": type(self._cache).__name__,
            "max_age_seconds": self.max_age_seconds,
            "max_size": self.max_size,
            "current_size": self._state.nbytes,
            "cache_set_data": self.cache_set_data,
            "tracked_keys": len(self._state.entries),
            "cached_keys": len(self._state.entries),
        }

    def cache_stats(self) -> dict[str, float]:
        """Count hits, misses and evictions."""
        state = self._state
        total = state.hits + state.misses
        rate = state.hits / total if total else 0.0
        counts = {"hits": state.hits, "misses": state.misses, "evictions": state.evictions}
        return {**counts, "total_requests": total, "hit_rate": rate}

    async def clear_cache(self) -> None:
        """Empty the cache; the wrapped store keeps its values."""
        await self._cache.clear()
        self._state.entries.clear()
        self._state.nbytes = 0

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(store={self._store!r}, cache_store={self._cache!r}, "
            f"max_age_seconds={self.max_age_seconds}, max_size={self.max_size}, "
            f"current_size={self._state.nbytes}, cached_keys={len(self._state.entries)})"
        )


__all__ = ["CacheStore"]
