"""Stores around a store: to watch, slow, shift or protect what is in it.

`WrapperStore` passes everything on and is the class to inherit; `LoggingStore` and `CountingStore` tell what was asked,
`LatencyStore` waits as a network would, `PrefixStore` is the part of a store under a prefix, `ReadOnlyStore` refuses
writes.

>>> from tessarr.stores.memory.store import MemoryStore
>>> store = CountingStore(MemoryStore({"a/b": b"1"}))
>>> store.get("a/b"), store.get("c"), dict(store.counter)
(b'1', None, {'get': 2})
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import Any, Self

from tessarr.common.segments import Piece, Stored
from tessarr.stores.base import Fetch, Listing, LockContext, Store, Version, shared_copy, spliced
from tessarr.stores.locks import Moment
from tessarr.stores.path import check_key, check_prefix, normalize_path, prefix_of
from tessarr.types import Buffer, ByteRange

_List = list


class WrapperStore(Store):
    """Passes every call on to `store`. A subclass overrides what it changes, or `_around` to see every call.

    The asynchronous methods pass through the wrapped store's own, so that a remote store stays asynchronous. In a subclass
    that overrides `get`, to change values on their way, all other ways to read that it does not override go through it;
    so do those to write where it overrides `set`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, others in (("get", _MADE_OF_GET), ("set", _MADE_OF_SET)):
            if name in cls.__dict__:
                for other in (f"{name}_async", *others, *(f"{other}_async" for other in others)):
                    if getattr(cls, other) is getattr(WrapperStore, other):
                        setattr(cls, other, _fetched_side_by_side if other == "fetch" else getattr(Store, other))

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read_only, self.is_remote = store.read_only, store.is_remote
        self.supports_writes, self.supports_deletes = store.supports_writes, store.supports_deletes
        self.lock_reaches_all = store.lock_reaches_all
        self.supports_conditional_writes = getattr(store, "supports_conditional_writes", False)
        self.supports_conditional_deletes = store.supports_conditional_deletes
        swaps = not self._overrides("get", "set") or self._overrides("update") or self._swaps()
        self.update_reaches_all = store.update_reaches_all and swaps
        self.supports_listing = store.supports_listing
        self.supports_partial_writes = store.supports_partial_writes
        self.supports_consolidated_metadata = store.supports_consolidated_metadata

    @property
    def requests_at_once(self) -> int:  # type: ignore[override]
        """The wrapped store's."""
        return self.store.requests_at_once

    @property
    def update_sees_set(self) -> bool:  # type: ignore[override]
        """The wrapped store's, unless an `update` here is another (see there)."""
        if self._overrides("get", "set") and not self._overrides("update"):
            return self._swaps()
        return self.store.update_sees_set

    def _around(self, method: str, place: str) -> AbstractContextManager[Any]:
        """What is entered around each call of the wrapped store; `place` is the key or prefix, or how many there are.

        `method` has no ``_async``: `_around_async` is the twin for asynchronous calls, and enters this one.
        """
        return nullcontext()

    @asynccontextmanager
    async def _around_async(self, method: str, place: str) -> AsyncIterator[None]:
        """Call `_around` asynchronously."""
        with self._around(method, place):
            yield

    def _key(self, key: str) -> str:
        """The wrapped store's name for `key` (or for a prefix)."""
        return key

    def _own(self, key: str) -> str:
        """The inverse of `_key`."""
        return key

    @property
    def url(self) -> str:
        """The wrapped store's URL."""
        return self.store.url

    def with_read_only(self, read_only: bool = True) -> Self:
        """See `Store.with_read_only`; wraps such a twin of the wrapped store."""
        import copy

        twin = copy.copy(self)
        twin.store = self.store.with_read_only(read_only)
        twin.read_only = read_only
        return twin

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.store == self.store

    def __hash__(self) -> int:
        return hash((type(self), self.store))

    def close(self) -> None:
        """Closes the wrapped store."""
        self.store.close()

    async def close_async(self) -> None:
        """Call `close` asynchronously."""
        await self.store.close_async()

    # -- several keys at once; the methods of one key are made below ------------------------------------------------

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        """See `Store.get_partial_values`."""
        wanted = [(self._key(key), part) for key, part in key_ranges]
        with self._around("get_partial_values", f"{len(wanted)} parts"):
            return self.store.get_partial_values(wanted)

    async def get_partial_values_async(
        self, key_ranges: Iterable[tuple[str, ByteRange | None]]
    ) -> _List[Buffer | None]:
        """Call `get_partial_values` asynchronously."""
        wanted = [(self._key(key), part) for key, part in key_ranges]
        async with self._around_async("get_partial_values", f"{len(wanted)} parts"):
            return await self.store.get_partial_values_async(wanted)

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """See `Store.fetch`."""
        wanted = [Fetch(self._key(key), ranges) for key, ranges in requests]
        with self._around("fetch", f"{len(wanted)} requests"):
            return self.store.fetch(wanted)

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Call `fetch` asynchronously."""
        wanted = [Fetch(self._key(key), ranges) for key, ranges in requests]
        async with self._around_async("fetch", f"{len(wanted)} requests"):
            return await self.store.fetch_async(wanted)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """See `Store.set_partial_values`."""
        self._check_writable("")
        parts = [(self._key(key), start, value) for key, start, value in key_start_values]
        with self._around("set_partial_values", f"{len(parts)} parts"):
            self.store.set_partial_values(parts)

    async def set_partial_values_async(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Call `set_partial_values` asynchronously."""
        self._check_writable("")
        parts = [(self._key(key), start, value) for key, start, value in key_start_values]
        async with self._around_async("set_partial_values", f"{len(parts)} parts"):
            await self.store.set_partial_values_async(parts)

    def delete_many(self, keys: Iterable[str]) -> None:
        """See `Store.delete_many`."""
        self._check_writable("")
        doomed = [self._key(key) for key in keys]
        with self._around("delete_many", f"{len(doomed)} keys"):
            self.store.delete_many(doomed)

    async def delete_many_async(self, keys: Iterable[str]) -> None:
        """Call `delete_many` asynchronously."""
        self._check_writable("")
        doomed = [self._key(key) for key in keys]
        async with self._around_async("delete_many", f"{len(doomed)} keys"):
            await self.store.delete_many_async(doomed)

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        """See `Store.replace_prefix`."""
        self._check_writable(prefix)
        new = {self._key(key): value for key, value in items.items()}
        with self._around("replace_prefix", prefix):
            self.store.replace_prefix(self._key(prefix), new)

    async def replace_prefix_async(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        """Call `replace_prefix` asynchronously."""
        self._check_writable(prefix)
        new = {self._key(key): value for key, value in items.items()}
        async with self._around_async("replace_prefix", prefix):
            await self.store.replace_prefix_async(self._key(prefix), new)

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """See `Store.list`."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """See `Store.list_prefix`."""
        check_prefix(prefix)
        with self._around("list_prefix", prefix):
            return map(self._own, self.store.list_prefix(self._key(prefix)))

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        """Call `list_prefix` asynchronously; the keys as a list."""
        check_prefix(prefix)
        async with self._around_async("list_prefix", prefix):
            return [self._own(key) for key in await self.store.list_prefix_async(self._key(prefix))]

    def list_dir(self, prefix: str) -> Listing:
        """See `Store.list_dir`."""
        check_prefix(prefix)
        with self._around("list_dir", prefix):
            return self._own_listing(self.store.list_dir(self._key(prefix)))

    async def list_dir_async(self, prefix: str) -> Listing:
        """Call `list_dir` asynchronously."""
        check_prefix(prefix)
        async with self._around_async("list_dir", prefix):
            return self._own_listing(await self.store.list_dir_async(self._key(prefix)))

    def _own_listing(self, listing: Listing) -> Listing:
        return Listing([self._own(key) for key in listing.keys], [self._own(prefix) for prefix in listing.prefixes])

    def version(self, key: str) -> Version | None:
        """See `Store.version`."""
        with self._around("version", key):
            return self.store.version(self._key(key))

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """See `Store.update`. Goes through `get` and `set` in a subclass that changes values there.

        Over a store with conditional writes that is a loop that compares and swaps; `set` must pass `if_match` on.
        """
        if self._overrides("get", "set"):
            if self._swaps():
                from tessarr.stores.compare_and_swap import swap_until_done

                swap_until_done(self, key, change)
            else:
                super().update(key, change)
            return
        self._check_writable(key)
        with self._around("update", key):
            self.store.update(self._key(key), change)

    def _swaps(self) -> bool:
        return self.supports_conditional_writes and _is_conditional(type(self).set)

    async def update_async(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Call `update` asynchronously."""
        if self._overrides("get", "set", "update"):
            await super().update_async(key, change)
            return
        self._check_writable(key)
        async with self._around_async("update", key):
            await self.store.update_async(self._key(key), change)

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        """See `Store.splice`. Goes through `update` in a subclass that changes values on their way."""
        if self._overrides("get", "set", "update"):
            super().splice(key, change)
            return
        self._check_writable(key)
        with self._around("splice", key):
            self.store.splice(self._key(key), change)

    async def splice_async(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        """Call `splice` asynchronously."""
        if self._overrides("get", "set", "update", "update_async"):
            await self.update_async(key, spliced(change))
            return
        self._check_writable(key)
        async with self._around_async("splice", key):
            await self.store.splice_async(self._key(key), change)

    def _overrides(self, *names: str) -> bool:
        """Whether a subclass has its own methods of these names."""
        return any(getattr(type(self), name) is not getattr(WrapperStore, name) for name in names)

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: the wrapped store's lock."""
        self._check_writable(key)
        return self.store.lock(self._key(key))


def _fetched_side_by_side(self: WrapperStore, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
    """See `Store.fetch`; a remote store is asked for all at once."""
    if not self.is_remote:
        return Store.fetch(self, requests)
    from tessarr.stores.remote.loop import run_side_by_side

    asked: _List[Callable[[], _List[Buffer] | None]] = [partial(self._fetch_one, request) for request in requests]
    return run_side_by_side(asked)


_MADE_OF_GET = ("get_ranges", "get_partial_values", "fetch", "getsize", "getsize_prefix")
_MADE_OF_SET = ("set_if_not_exists", "set_partial_values", "replace_prefix")


def _is_conditional(function: Callable[..., Any]) -> bool:
    """Whether a method `set` takes `if_match`."""
    from inspect import Parameter, signature

    parameters = signature(function).parameters
    return "if_match" in parameters or any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())


_READS = ("get", "get_ranges", "exists", "getsize", "getsize_prefix")
_WRITES = ("set", "set_if_not_exists", "delete", "delete_prefix")


def _pass_on(name: str) -> None:
    """Gives `WrapperStore` the method `name`, whose first argument is a key or prefix, and its ``_async`` twin."""
    writes = name in _WRITES

    def method(self: WrapperStore, key: str, *args: Any, **kwargs: Any) -> Any:
        if writes:
            self._check_writable(key)
        with self._around(name, key):
            return getattr(self.store, name)(self._key(key), *args, **kwargs)

    async def method_async(self: WrapperStore, key: str, *args: Any, **kwargs: Any) -> Any:
        if writes:
            self._check_writable(key)
        async with self._around_async(name, key):
            return await getattr(self.store, f"{name}_async")(self._key(key), *args, **kwargs)

    for function, known_as in ((method, name), (method_async, f"{name}_async")):
        function.__name__ = known_as
        function.__qualname__ = f"WrapperStore.{known_as}"
        function.__doc__ = f"See `Store.{known_as}`."
        setattr(WrapperStore, known_as, function)


for _name in (*_READS, *_WRITES):
    _pass_on(_name)


_COUNTING = Moment()


class CountingStore(WrapperStore):
    """Counts the calls by method in `counter`, a `collections.Counter`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.counter: Counter[str] = Counter()

    def _count(self, method: str) -> None:
        with _COUNTING:
            self.counter[method] += 1

    def _around(self, method: str, place: str) -> AbstractContextManager[Any]:
        self._count(method)
        return nullcontext()


class LoggingStore(CountingStore):
    """Logs every call with its duration at `log_level`, and counts the calls in `counter`.

    `log_handler` is where the records go; ``None`` is standard error.
    """

    def __init__(self, store: Store, log_level: str = "DEBUG", log_handler: logging.Handler | None = None) -> None:
        super().__init__(store)
        self.log_level = log_level
        self.log_handler = log_handler or logging.StreamHandler()
        self._open_log()

    def _open_log(self) -> None:
        # Not `getLogger`: the handler and level are this store's, not those of every store of its kind.
        self.logger = logging.Logger(f"tessarr.{type(self.store).__name__}", self.log_level)  # noqa: LOG001
        self.logger.addHandler(self.log_handler)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("logger", "log_handler")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.log_handler = logging.StreamHandler()
        self._open_log()

    __copy__ = shared_copy

    @contextmanager
    def _around(self, method: str, place: str) -> Iterator[None]:
        self._count(method)
        started = time.perf_counter()
        level = logging.getLevelName(self.log_level)
        self.logger.log(level, "%s.%s(%s)", type(self.store).__name__, method, place)
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            self.logger.log(level, "%s.%s(%s): %.6f s", type(self.store).__name__, method, place, seconds)


class LatencyStore(WrapperStore):
    """Waits `get_latency` seconds before each read and listing, `set_latency` before each write, as a network would.

    A `fetch` waits once: a remote store sends its requests together.
    """

    def __init__(self, store: Store, *, get_latency: float = 0, set_latency: float = 0) -> None:
        super().__init__(store)
        self.get_latency = get_latency
        self.set_latency = set_latency
        self.is_remote = True

    def _latency_s(self, method: str) -> float:
        return (
            self.set_latency
            if method.startswith(("set", "update", "splice", "delete", "replace"))
            else self.get_latency
        )

    def _around(self, method: str, place: str) -> AbstractContextManager[Any]:
        time.sleep(self._latency_s(method))
        return nullcontext()

    @asynccontextmanager
    async def _around_async(self, method: str, place: str) -> AsyncIterator[None]:
        import asyncio

        await asyncio.sleep(self._latency_s(method))
        yield


class PrefixStore(WrapperStore):
    """The part of a store under `prefix`, as a store of its own.

    >>> from tessarr.stores.memory.store import MemoryStore
    >>> PrefixStore(MemoryStore({"a/b": b"1"}), "a").get("b")
    b'1'
    """

    def __init__(self, store: Store, prefix: str) -> None:
        super().__init__(store)
        self.prefix = prefix_of(normalize_path(prefix))

    @property
    def url(self) -> str:
        """The wrapped store's URL with the prefix behind it."""
        from urllib.parse import quote

        base = self.store
        while isinstance(base, WrapperStore):
            base = base.store
        inner, prefix = self.store.url.rstrip("/"), quote(self.prefix.rstrip("/"))
        # What is one file has no paths below it: a pipeline leads into it.
        adapter = getattr(base, "adapter", None) if "|" not in inner else None
        return (f"{inner}|{adapter}:{prefix}" if adapter and prefix else f"{inner}/{prefix}").rstrip("/")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrefixStore) and other.prefix == self.prefix and other.store == self.store

    def __hash__(self) -> int:
        return hash((self.prefix, self.store))

    def _key(self, key: str) -> str:
        # Checked before the prefix hides what is wrong with it: "" is a prefix here, and no key.
        if key:
            (check_prefix if key[-1:] == "/" else check_key)(key)
        return self.prefix + key

    def _own(self, key: str) -> str:
        return key[len(self.prefix) :]


class ReadOnlyStore(WrapperStore):
    """A store that may be read, whatever the wrapped one allows. `with_read_only(False)` is refused."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read_only = True

    def with_read_only(self, read_only: bool = True) -> Self:
        """Itself; raises `ValueError` for ``False``."""
        if not read_only:
            raise ValueError("a ReadOnlyStore stays read-only; use the store it wraps")
        return self
