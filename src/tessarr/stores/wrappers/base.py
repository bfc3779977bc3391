"""Base classes of stores around a store.

`WrapperStore` forwards `get`, `set`, `delete`, listings, versions and locks; every other method calls these. So a
subclass that transforms values overrides `get` and `set`, and no update, fetch or asynchronous call bypasses it.

`ForwardingStore` forwards every method, asynchronous ones to asynchronous ones: for wrappers that leave values alone.

Both have no ability (`tessarr.stores.protocols`) that the wrapped store lacks: see `WrapperStore.has_ability`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import lru_cache
from typing import Self

from tessarr.common.segments import Piece, Stored
from tessarr.errors import ConflictError
from tessarr.stores.base import ANY, Any_, Fetch, Listing, LockContext, Store, Version, _in_thread
from tessarr.stores.fetch import Fetched, Unchanged
from tessarr.stores.functions import stamp_below
from tessarr.stores.path import check_prefix, prefix_of
from tessarr.stores.protocols import (
    Commit,
    ConditionalDelete,
    ConditionalSet,
    ExchangePrefixes,
    FetchOne,
    ListVersions,
    Remote,
    RenamePrefix,
    Settle,
    Snapshot,
    Stamp,
)
from tessarr.types import Buffer, ByteRange

_List = list


class WrapperStore(Store):
    """A store around `store`, to inherit by wrappers that change values: see the head of this file.

    >>> class Inverted(WrapperStore):
    ...     def get(self, key, byte_range=None):
    ...         value = self.store.get(key, byte_range)
    ...         return None if value is None else bytes(255 - byte for byte in bytes(value))
    ...     def set(self, key, value, *, if_match=ANY):
    ...         return self.store.set(key, bytes(255 - byte for byte in bytes(value)), if_match=if_match)
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read_only = store.read_only
        if isinstance(store, Remote):
            self.requests_at_once = store.requests_at_once

    @property
    def supports_consolidated_metadata(self) -> bool:
        """The wrapped store's."""
        return self.store.supports_consolidated_metadata

    @property
    def may_hold_v1(self) -> bool:
        """The wrapped store's."""
        return self.store.may_hold_v1

    @property
    def refuses_chunks_beyond_shape(self) -> bool:
        """The wrapped store's."""
        return self.store.refuses_chunks_beyond_shape

    @property
    def url(self) -> str:
        """The wrapped store's URL."""
        return self.store.url

    def has_ability(self, ability: type) -> bool:
        """Whether the wrapped store has `ability`; a wrapper that adds abilities overrides this method."""
        return isinstance(self.store, ability) and (ability is not ConditionalSet or _takes_if_match(type(self).set))

    def with_read_only(self, read_only: bool = True) -> Self:
        """See `Store.with_read_only`; the copy wraps such a copy of the wrapped store."""
        import copy

        result = copy.copy(self)
        result.store = self.store.with_read_only(read_only)
        result.read_only = read_only
        return result

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.store == self.store

    def __hash__(self) -> int:
        return hash((type(self), self.store))

    def close(self) -> None:
        """Close the wrapped store."""
        self.store.close()

    async def close_async(self) -> None:
        await self.store.close_async()

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return self.store.get(key, byte_range)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        return self.store._set_if_match(key, value, if_match)

    def set_if(self, key: str, value: Buffer, version: Version | None) -> Version | None:
        """See `tessarr.stores.protocols.ConditionalSet`: calls `set` with `if_match`, which a subclass must pass on."""
        return self.set(key, value, if_match=version)

    def version(self, key: str) -> Version | None:
        return self.store.version(key)

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: the wrapped store's lock."""
        self._check_writable(key)
        return self.store.lock(key)

    def delete(self, key: str) -> None:
        self._check_writable(key)
        self.store.delete(key)

    def delete_if(self, key: str, version: Version | None) -> None:
        self._check_writable(key)
        assert isinstance(self.store, ConditionalDelete)
        self.store.delete_if(key, version)

    def _stamp_of_wrapped(self, prefix: str, counts: Callable[[str], bool]) -> str | None:
        """Return the stamp of the wrapped store, of which the `_stamp_below` of wrappers is made."""
        return stamp_below(self.store, prefix, counts)

    def settle(self, path: str) -> None:
        assert isinstance(self.store, Settle)
        self.store.settle(path)

    def _invalidate_cached(self, prefix: str, is_stale: Callable[[str], bool]) -> None:
        self.store._invalidate_cached(prefix, is_stale)

    async def settle_async(self, path: str) -> None:
        await _in_thread(self.settle, path)

    def list(self, prefix: str = "") -> Iterator[str]:
        return self.store.list_prefix(prefix)

    def list_dir(self, prefix: str) -> Listing:
        return self.store.list_dir(prefix)


def innermost(store: Store) -> Store:
    """Return the store that is below all wrappers."""
    while isinstance(store, WrapperStore):
        store = store.store
    return store


@lru_cache(maxsize=256)  # of classes, so that few are kept
def _takes_if_match(function: Callable[..., object]) -> bool:
    from inspect import Parameter, signature

    parameters = signature(function).parameters
    return "if_match" in parameters or any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())


class ForwardingStore(WrapperStore):
    """A store around `store` that forwards every method, within the context `_around`, with keys mapped by `_inner_key`."""

    def _around(self, method: str, place: str) -> AbstractContextManager[object]:
        """Return the context manager for one call of the wrapped store.

        `place` is the key or prefix, or a count of keys. `method` has no ``_async``: asynchronous calls enter
        `_around_async`, which enters this one.
        """
        return nullcontext()

    @asynccontextmanager
    async def _around_async(self, method: str, place: str) -> AsyncIterator[None]:
        with self._around(method, place):
            yield

    def _inner_key(self, key: str) -> str:
        """Map `key` (or a prefix) to the wrapped store's key."""
        return key

    def _outer_key(self, key: str) -> str:
        """Map a key of the wrapped store back: the inverse of `_inner_key`."""
        return key

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        with self._around("get", key):
            return self.store.get(self._inner_key(key), byte_range)

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        async with self._around_async("get", key):
            return await self.store.get_async(self._inner_key(key), byte_range)

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        with self._around("get_ranges", key):
            return self.store.get_ranges(self._inner_key(key), ranges)

    async def get_ranges_async(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        async with self._around_async("get_ranges", key):
            return await self.store.get_ranges_async(self._inner_key(key), ranges)

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        wanted = [(self._inner_key(key), part) for key, part in key_ranges]
        with self._around("get_partial_values", f"{len(wanted)} parts"):
            return self.store.get_partial_values(wanted)

    async def get_partial_values_async(
        self, key_ranges: Iterable[tuple[str, ByteRange | None]]
    ) -> _List[Buffer | None]:
        wanted = [(self._inner_key(key), part) for key, part in key_ranges]
        async with self._around_async("get_partial_values", f"{len(wanted)} parts"):
            return await self.store.get_partial_values_async(wanted)

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        wanted = [Fetch(self._inner_key(key), ranges) for key, ranges in requests]
        with self._around("fetch", f"{len(wanted)} requests"):
            return self.store.fetch(wanted)

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        wanted = [Fetch(self._inner_key(key), ranges) for key, ranges in requests]
        async with self._around_async("fetch", f"{len(wanted)} requests"):
            return await self.store.fetch_async(wanted)

    async def fetch_one(self, request: Fetch) -> Fetched | None:
        assert isinstance(self.store, FetchOne)
        async with self._around_async("fetch", request.key):
            return await self.store.fetch_one(Fetch(self._inner_key(request.key), request.ranges))

    def get_if_changed(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        with self._around("get_if_changed", key):
            return self.store.get_if_changed(self._inner_key(key), version)

    async def get_if_changed_async(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        async with self._around_async("get_if_changed", key):
            return await self.store.get_if_changed_async(self._inner_key(key), version)

    def exists(self, key: str) -> bool:
        with self._around("exists", key):
            return self.store.exists(self._inner_key(key))

    async def exists_async(self, key: str) -> bool:
        async with self._around_async("exists", key):
            return await self.store.exists_async(self._inner_key(key))

    def getsize(self, key: str) -> int | None:
        with self._around("getsize", key):
            return self.store.getsize(self._inner_key(key))

    async def getsize_async(self, key: str) -> int | None:
        async with self._around_async("getsize", key):
            return await self.store.getsize_async(self._inner_key(key))

    def getsize_prefix(self, prefix: str) -> int:
        with self._around("getsize_prefix", prefix):
            return self.store.getsize_prefix(self._inner_key(prefix))

    async def getsize_prefix_async(self, prefix: str) -> int:
        async with self._around_async("getsize_prefix", prefix):
            return await self.store.getsize_prefix_async(self._inner_key(prefix))

    def version(self, key: str) -> Version | None:
        with self._around("version", key):
            return self.store.version(self._inner_key(key))

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        with self._around("set", key):
            return self.store._set_if_match(self._inner_key(key), value, if_match)

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        async with self._around_async("set", key):
            return await self.store.set_async(self._inner_key(key), value, if_match=if_match)

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        self._check_writable(key)
        with self._around("set_if_not_exists", key):
            return self.store.set_if_not_exists(self._inner_key(key), value)

    async def set_if_not_exists_async(self, key: str, value: Buffer) -> bool:
        self._check_writable(key)
        async with self._around_async("set_if_not_exists", key):
            return await self.store.set_if_not_exists_async(self._inner_key(key), value)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        self._check_writable("")
        parts = [(self._inner_key(key), start, value) for key, start, value in key_start_values]
        with self._around("set_partial_values", f"{len(parts)} parts"):
            self.store.set_partial_values(parts)

    async def set_partial_values_async(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        self._check_writable("")
        parts = [(self._inner_key(key), start, value) for key, start, value in key_start_values]
        async with self._around_async("set_partial_values", f"{len(parts)} parts"):
            await self.store.set_partial_values_async(parts)

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        with self._around("update", key):
            self.store.update(self._inner_key(key), change)

    async def update_async(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        async with self._around_async("update", key):
            await self.store.update_async(self._inner_key(key), change)

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        self._check_writable(key)
        with self._around("splice", key):
            self.store.splice(self._inner_key(key), change)

    async def splice_async(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        self._check_writable(key)
        async with self._around_async("splice", key):
            await self.store.splice_async(self._inner_key(key), change)

    def lock(self, key: str) -> LockContext:
        self._check_writable(key)
        return self.store.lock(self._inner_key(key))

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        self._check_writable("")
        assert isinstance(self.store, Commit)
        new = {self._inner_key(key): value for key, value in changes.items()}
        found = {self._inner_key(key): version for key, version in expected.items()}
        with self._around("commit", f"{len(new)} keys"):
            try:
                self.store.commit(new, found, listed=[*map(self._inner_key, listed)], durable=durable)
            except ConflictError as error:
                error.keys = tuple(map(self._outer_key, error.keys))
                raise

    def snapshot(self) -> Store:
        import copy

        assert isinstance(self.store, Snapshot)
        result = copy.copy(self)
        with self._around("snapshot", ""):
            result.store = self.store.snapshot()
        result.read_only = True
        return result

    def list_versions(self, prefix: str) -> Mapping[str, Version]:
        assert isinstance(self.store, ListVersions)
        with self._around("list_prefix", prefix):
            found = self.store.list_versions(self._inner_key(prefix))
        return {self._outer_key(key): version for key, version in found.items()}

    def stamp(self, prefix: str, counts: Callable[[str], bool]) -> str:
        assert isinstance(self.store, Stamp)
        with self._around("list_prefix", prefix):
            return self.store.stamp(self._inner_key(prefix), lambda key: counts(self._outer_key(key)))

    def _stamp_below(self, prefix: str, counts: Callable[[str], bool]) -> str | None:
        with self._around("list_prefix", prefix):
            return self._stamp_of_wrapped(self._inner_key(prefix), lambda key: counts(self._outer_key(key)))

    def settle(self, path: str) -> None:
        with self._around("settle", path):
            super().settle(self._inner_key(prefix_of(path)).rstrip("/"))

    def _invalidate_cached(self, prefix: str, is_stale: Callable[[str], bool]) -> None:
        self.store._invalidate_cached(self._inner_key(prefix), is_stale)

    # -- deleting ----------------------------------------------------------------------------------------------

    def delete(self, key: str) -> None:
        self._check_writable(key)
        with self._around("delete", key):
            self.store.delete(self._inner_key(key))

    async def delete_async(self, key: str) -> None:
        self._check_writable(key)
        async with self._around_async("delete", key):
            await self.store.delete_async(self._inner_key(key))

    def delete_if(self, key: str, version: Version | None) -> None:
        with self._around("delete", key):
            super().delete_if(self._inner_key(key), version)

    def delete_many(self, keys: Iterable[str]) -> None:
        self._check_writable("")
        inner_keys = [self._inner_key(key) for key in keys]
        with self._around("delete_many", f"{len(inner_keys)} keys"):
            self.store.delete_many(inner_keys)

    async def delete_many_async(self, keys: Iterable[str]) -> None:
        self._check_writable("")
        inner_keys = [self._inner_key(key) for key in keys]
        async with self._around_async("delete_many", f"{len(inner_keys)} keys"):
            await self.store.delete_many_async(inner_keys)

    def delete_prefix(self, prefix: str) -> None:
        self._check_writable(prefix)
        with self._around("delete_prefix", prefix):
            self.store.delete_prefix(self._inner_key(prefix))

    async def delete_prefix_async(self, prefix: str) -> None:
        self._check_writable(prefix)
        async with self._around_async("delete_prefix", prefix):
            await self.store.delete_prefix_async(self._inner_key(prefix))

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._check_writable(prefix)
        new = {self._inner_key(key): value for key, value in items.items()}
        with self._around("replace_prefix", prefix):
            self.store.replace_prefix(self._inner_key(prefix), new)

    async def replace_prefix_async(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._check_writable(prefix)
        new = {self._inner_key(key): value for key, value in items.items()}
        async with self._around_async("replace_prefix", prefix):
            await self.store.replace_prefix_async(self._inner_key(prefix), new)

    def rename_prefix(self, source: str, dest: str) -> bool:
        self._check_writable(dest)
        assert isinstance(self.store, RenamePrefix)
        with self._around("rename_prefix", source):
            return self.store.rename_prefix(self._inner_key(source), self._inner_key(dest))

    def exchange_prefixes(self, one: str, other: str) -> bool:
        self._check_writable(one)
        assert isinstance(self.store, ExchangePrefixes)
        with self._around("exchange_prefixes", one):
            return self.store.exchange_prefixes(self._inner_key(one), self._inner_key(other))

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        with self._around("list_prefix", prefix):
            return map(self._outer_key, self.store.list_prefix(self._inner_key(prefix)))

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        check_prefix(prefix)
        async with self._around_async("list_prefix", prefix):
            return [self._outer_key(key) for key in await self.store.list_prefix_async(self._inner_key(prefix))]

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        with self._around("list_dir", prefix):
            return self._outer_listing(self.store.list_dir(self._inner_key(prefix)))

    async def list_dir_async(self, prefix: str) -> Listing:
        check_prefix(prefix)
        async with self._around_async("list_dir", prefix):
            return self._outer_listing(await self.store.list_dir_async(self._inner_key(prefix)))

    def _outer_listing(self, listing: Listing) -> Listing:
        return Listing(
            [self._outer_key(key) for key in listing.keys], [self._outer_key(prefix) for prefix in listing.prefixes]
        )
