"""Stores that are written as coroutines, and the adapters between the two kinds: `to_sync` and `to_async`.

A store is written once. One that is written as synchronous methods inherits `Store`, whose ``_async`` methods run these in
threads. One that is written as coroutines inherits `AsyncStore`, whose synchronous methods run these in the process's event
loop (`tessarr.stores.remote.loop`).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from tessarr.common.segments import Piece, Stored
from tessarr.errors import ConflictError
from tessarr.stores import functions
from tessarr.stores.base import ANY, Any_, Fetch, Listing, Store, Version, spliced
from tessarr.stores.buffers import byte_view, merge_parts, parts_by_key
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import DELETING, LISTING, ConditionalSet, List, Set, fallback
from tessarr.stores.remote.loop import gather_or_cancel, in_caller_thread, run
from tessarr.types import Buffer, ByteRange

_List = list
T = TypeVar("T")


class AsyncStore(Store):
    """A store to inherit that is written as coroutines: `get_async`, `set_async`, `delete_async` and `list_prefix_async`.

    Every other method is made of these; override what the place can do better. Synchronous methods wait for the
    coroutines, which run in the one event loop of the process.
    """

    def has_ability(self, ability: type) -> bool:
        """Whether places of this kind have `ability`: not `ConditionalSet`, unless a subclass says so."""
        return ability is not ConditionalSet

    def _run(self, call: Coroutine[object, object, T]) -> T:
        """Run a coroutine for a synchronous caller: in an event loop, unless a subclass can do without."""
        return run(call)

    def _run_one(self, call: Coroutine[object, object, T]) -> T:
        """Run a coroutine of one value for a synchronous caller."""
        return self._run(call)

    # -- reading -----------------------------------------------------------------------------------------------

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        raise self._missing_method("get_async(key, byte_range=None)")

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return self._run_one(self.get_async(key, byte_range))

    async def get_ranges_async(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        parts = await gather_or_cancel([self.get_async(key, part) for part in ranges])
        present = [part for part in parts if part is not None]
        return present if len(present) == len(parts) else None

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return self._run_one(self.get_ranges_async(key, ranges))

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        return list(await gather_or_cancel([self._fetch_async(request) for request in requests])) if requests else []

    async def _fetch_async(self, request: Fetch) -> _List[Buffer] | None:
        if request.ranges is not None:
            return await self.get_ranges_async(request.key, request.ranges)
        value = await self.get_async(request.key)
        return None if value is None else [value]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        return self._run_one(self.fetch_async(requests))

    async def get_partial_values_async(
        self, key_ranges: Iterable[tuple[str, ByteRange | None]]
    ) -> _List[Buffer | None]:
        requests = [Fetch(key, None if part is None else (part,)) for key, part in key_ranges]
        return [None if found is None else found[0] for found in await self.fetch_async(requests)]

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        return self._run(self.get_partial_values_async(key_ranges))

    async def exists_async(self, key: str) -> bool:
        return await self.get_async(key, ByteRange(0, 0)) is not None

    def exists(self, key: str) -> bool:
        return self._run_one(self.exists_async(key))

    async def getsize_async(self, key: str) -> int | None:
        value = await self.get_async(key)
        return None if value is None else byte_view(value).nbytes

    def getsize(self, key: str) -> int | None:
        return self._run_one(self.getsize_async(key))

    async def getsize_prefix_async(self, prefix: str) -> int:
        sizes = await gather_or_cancel([self.getsize_async(key) for key in await self.list_prefix_async(prefix)])
        return sum(size or 0 for size in sizes)

    def getsize_prefix(self, prefix: str) -> int:
        return self._run(self.getsize_prefix_async(prefix))

    async def version_async(self, key: str) -> Version | None:
        return None

    def version(self, key: str) -> Version | None:
        return self._run_one(self.version_async(key))

    # -- writing -----------------------------------------------------------------------------------------------

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        raise self._missing_method("set_async(key, value)")

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        return self._run_one(self.set_async(key, value, if_match=if_match))

    def set_if(self, key: str, value: Buffer, version: Version | None) -> Version | None:
        return self._run_one(self.set_async(key, value, if_match=version))

    async def set_if_not_exists_async(self, key: str, value: Buffer) -> bool:
        self._check_writable(key)
        if not isinstance(self, ConditionalSet):
            return await in_caller_thread(functions.set_if_not_exists, self, key, value)
        try:
            await self.set_async(key, value, if_match=None)
        except ConflictError:
            return False
        return True

    async def set_partial_values_async(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        for key, parts in parts_by_key(key_start_values).items():
            await self.update_async(key, lambda old, parts=parts: merge_parts(old, parts))  # type: ignore[misc]

    async def update_async(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        await in_caller_thread(functions.update_by_set, self, key, change)

    async def splice_async(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        await self.update_async(key, spliced(change))

    # -- deleting ----------------------------------------------------------------------------------------------

    async def delete_async(self, key: str) -> None:
        self._check_writable(key)
        raise self._missing_method("delete_async(key)")

    def delete(self, key: str) -> None:
        self._run_one(self.delete_async(key))

    async def delete_many_async(self, keys: Iterable[str]) -> None:
        self._check_writable("")
        await gather_or_cancel([self.delete_async(key) for key in keys])

    def delete_many(self, keys: Iterable[str]) -> None:
        self._run(self.delete_many_async(keys))

    async def delete_prefix_async(self, prefix: str) -> None:
        self._check_writable(prefix)
        await self.delete_many_async(await self.list_prefix_async(prefix))

    @fallback
    def delete_prefix(self, prefix: str) -> None:
        self._run(self.delete_prefix_async(prefix))

    async def replace_prefix_async(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._check_writable(prefix)
        staged = {f"{prefix}{functions.STAGED}/{number}": value for number, value in enumerate(items.values())}
        old = await self.list_prefix_async(prefix) if isinstance(self, List) else []
        await gather_or_cancel([self.set_async(key, value) for key, value in staged.items()])
        await self.delete_many_async(key for key in old if key not in items)
        for key, value in items.items():
            await self.set_async(key, value)
        await self.delete_many_async(staged)

    @fallback
    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._run(self.replace_prefix_async(prefix, items))

    # -- listing -----------------------------------------------------------------------------------------------

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        raise self._missing_method("list_prefix_async(prefix)")

    def list(self, prefix: str = "") -> Iterator[str]:
        return iter(self._run(self.list_prefix_async(prefix)))

    async def list_dir_async(self, prefix: str) -> Listing:
        return functions.children(await self.list_prefix_async(prefix), prefix)

    def list_dir(self, prefix: str) -> Listing:
        return self._run(self.list_dir_async(prefix))


# -- adapters -----------------------------------------------------------------------------------------------------------


class Coroutines(Protocol):
    """An object whose four methods are coroutines; `list` may be an asynchronous generator."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> Awaitable[Buffer | None]: ...
    def set(self, key: str, value: Buffer) -> Awaitable[object]: ...
    def delete(self, key: str) -> Awaitable[object]: ...
    def list(self, prefix: str = "") -> Awaitable[Iterable[str]] | AsyncIterable[str]: ...


class SyncAdapter(AsyncStore):
    """What `to_sync` returns: a store over an object whose methods are coroutines."""

    def __init__(self, store: Coroutines, *, read_only: bool = False) -> None:
        self.store = store
        self.read_only = read_only

    def has_ability(self, ability: type) -> bool:
        """Whether the object has the method of `ability`."""
        for abilities, method in ((Set,), "set"), (DELETING, "delete"), (LISTING, "list"):
            if ability in abilities:
                return hasattr(self.store, method)
        return super().has_ability(ability)

    @property
    def url(self) -> str:
        """The URL of the object where it has one."""
        return functions.url_of(self.store)

    def __eq__(self, other: object) -> bool:
        # By identity: an object may compare by its content, which changes, as a dictionary does.
        return isinstance(other, SyncAdapter) and other.store is self.store and other.read_only == self.read_only

    def __hash__(self) -> int:
        return hash(id(self.store))

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        check_key(key)
        return await self.store.get(key, byte_range)

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        check_key(key)
        if not isinstance(if_match, Any_):
            raise functions.no_conditional_writes(self, key)
        await self.store.set(key, bytes(byte_view(value)))
        return None

    async def delete_async(self, key: str) -> None:
        self._check_writable(key)
        check_key(key)
        await self.store.delete(key)

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        check_prefix(prefix)
        keys: Any = self.store.list(prefix)
        found = [*(await keys)] if inspect.isawaitable(keys) else [key async for key in keys]
        return [key for key in found if key.startswith(prefix)]


class AsyncAdapter:
    """What `to_async` returns: the four methods of a store as coroutines."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        """Read a value, or the part in `byte_range`; ``None``: no such key."""
        return await self.store.get_async(key, byte_range)

    async def set(self, key: str, value: Buffer) -> None:
        """Replace a value atomically."""
        await self.store.set_async(key, value)

    async def delete(self, key: str) -> None:
        """Remove `key`; a missing key is not an error."""
        await self.store.delete_async(key)

    async def list(self, prefix: str = "") -> _List[str]:
        """List every key under `prefix`."""
        return await self.store.list_prefix_async(prefix)


def to_sync(store: Coroutines, *, read_only: bool = False) -> Store:
    """Make a `Store` of an object whose methods `get`, `set`, `delete` and `list` are coroutines.

    >>> import asyncio
    >>> class Values(dict):
    ...     async def get(self, key, byte_range=None):
    ...         await asyncio.sleep(0)
    ...         return super().get(key)
    ...     async def set(self, key, value):
    ...         self[key] = value
    ...     async def delete(self, key):
    ...         self.pop(key, None)
    ...     async def list(self, prefix=""):
    ...         return [*self]
    >>> store = to_sync(Values())
    >>> store.set("a/b", b"1")
    >>> store.get("a/b"), store.list_dir("").prefixes
    (b'1', ['a/'])
    """
    return SyncAdapter(store, read_only=read_only)


def to_async(store: Store) -> AsyncAdapter:
    """Make an object with the coroutines `get`, `set`, `delete` and `list` of any store.

    >>> import asyncio
    >>> from tessarr.storage import MemoryStore
    >>> asyncio.run(to_async(MemoryStore({"a": b"1"})).get("a"))
    b'1'
    """
    return AsyncAdapter(store)
