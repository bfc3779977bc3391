"""Adapt any store of zarr-python 3 (Icechunk's, obspec wrappers, user-defined ones) to a tessarr store.

Such stores have only coroutines, and some are bound to the event loop in which they first ran. So all coroutines run in
zarr-python's background loop, whatever loop the caller has; asynchronous callers await the result without blocking their
loop. A `fetch` of many requests is one hand-over to that loop.

Limits: there are no conditional writes, so that updates exclude one another only within this process. The pickle of a store
over obstore or fsspec has no credentials; the pickle of any other store contains that store's pickle. zarr-python is not a
dependency, because a user of such a store has it.

Source: `zarr.abc.store.Store` of zarr-python 3.0 to 3.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from tessarr.errors import StoreError, TessarrError, UnsupportedOperationError
from tessarr.stores import functions
from tessarr.stores.base import ANY, Any_, Fetch, Listing, LockContext, Version, shared_copy
from tessarr.stores.buffers import byte_view
from tessarr.stores.local.lock import has_hidden_name, is_hidden
from tessarr.stores.local.tree import remove_empty_tree
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import DELETING, LISTING, Lock, RenamePrefix, ReplacePrefix, Set
from tessarr.stores.remote.fetch_methods import AsyncFetchingStore
from tessarr.stores.remote.limiter import Outcome, limiter_for
from tessarr.stores.virtual.branches import is_session
from tessarr.types import JSON, Buffer, ByteRange

T = TypeVar("T")
_List = list
_DOCUMENTS = frozenset({"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"})
_NO_KEYS = ("invalid zarr key format", "there is not an array at")
"""Icechunk's messages for keys that Zarr v3 does not have, and for what would be a chunk of a group; they have no value."""
_NO_NODE = "Only prefixes pointing to a group or array are allowed"
"""Icechunk's message for a prefix that is not that of a node, of which it lists names alone."""
_MISSING = (FileNotFoundError, KeyError, NotADirectoryError, IsADirectoryError)
_PAGE = 1000
"""So many values are copied at once."""
_LOCAL_CLASSES = ("LocalStore", "MemoryStore", "ZipStore", "ManagedMemoryStore")


def says_missing(error: Exception) -> bool:
    """Whether `error`, raised by a store of zarr-python for a key, says that the key has no value."""
    return isinstance(error, _MISSING) or any(message in str(error) for message in _NO_KEYS)


class ZarrPythonStore(AsyncFetchingStore):
    """A store over `store`, a store of zarr-python.

    `url` names the place; ``None``: the URL of a directory, or a name that is valid in this process while the store exists.
    """

    def __init__(self, store: Any, *, read_only: bool = False, url: str | None = None) -> None:
        self.store = store
        self.branch: object = None
        """What ends with the last copy of this store, for a branch of Icechunk that a URL opened."""
        self._url = url
        self.read_only = read_only or bool(store.read_only)
        if not self._is_local:
            self.requests_at_once = 16
        self._origin = url or f"object+zarr-python://{type(store).__name__}"

    def has_ability(self, ability: type) -> bool:
        """Whether the zarr-python store has `ability`, by its attributes `supports_…`."""
        if ability is Set:
            return bool(self.store.supports_writes)
        if ability in (RenamePrefix, ReplacePrefix):
            return self._is_session  # no caller sees a session between two steps
        if ability in DELETING:
            return bool(self.store.supports_deletes)
        if ability in LISTING:
            return bool(self.store.supports_listing)
        if ability is Lock:
            # Other writers of an Icechunk repository have separate sessions; conflicts are detected at commit.
            return self._is_local or self._is_session
        return super().has_ability(ability)

    @property
    def may_hold_v1(self) -> bool:
        """``False``: zarr-python 3 reads no Zarr v1."""
        return False

    @property
    def refuses_chunks_beyond_shape(self) -> bool:
        """Whether the store is a session of Icechunk."""
        return self._is_session

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether the zarr-python store supports consolidated metadata."""
        return bool(getattr(self.store, "supports_consolidated_metadata", True))

    @property
    def url(self) -> str:
        if self._url is not None:
            return self._url
        text = str(self.store)
        if text.startswith("file://"):
            return text
        from tessarr.stores.memory.process_urls import registered

        return registered(self, f"object+zarr-python://{type(self.store).__name__}-{id(self.store):x}")

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "store": _picklable(self.store)}

    def __setstate__(self, state: Mapping[str, JSON]) -> None:
        self.__dict__.update(state)
        if isinstance(self.store, _PickledStore):
            self.store = self.store.restore()

    __copy__ = shared_copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZarrPythonStore) or other.read_only != self.read_only:
            return False
        # zarr-python compares stores in memory by content, which changes; the others by place.
        in_memory = "Memory" in type(self.store).__name__
        return other.store is self.store or (not in_memory and bool(other.store == self.store))

    def __hash__(self) -> int:
        return hash((type(self), type(self.store)))

    def close(self) -> None:
        self.store.close()

    # -- zarr-python's loop ------------------------------------------------------------------------------------

    def _loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop in which the store's coroutines run."""
        from zarr.core.sync import _get_loop

        loop: asyncio.AbstractEventLoop = _get_loop()
        return loop

    def _run(self, call: Coroutine[object, object, T]) -> T:
        from zarr.core.sync import sync

        found: T = sync(call)
        return found

    async def _in_loop(self, key: str, call: Coroutine[object, object, T]) -> T:
        """Await `call` in the store's event loop. Raises its errors as `StoreError`."""
        loop = self._loop()
        if asyncio.get_running_loop() is loop:
            return await self._guarded(key, call)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._guarded(key, call), loop))

    async def _guarded(self, key: str, call: Coroutine[object, object, T]) -> T:
        try:
            await self._open()
            return await call
        except TessarrError:
            raise
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
            raise StoreError("the zarr-python store failed", store=self.url, key=key or None, got=got) from error

    async def _open(self) -> None:
        if not self.store._is_open:
            await self.store._open()

    async def _one(self, call: Awaitable[T]) -> T:
        """Await one request, within the concurrency limit."""
        limiter = limiter_for(self._origin)
        outcome: Outcome = "neutral"
        await limiter.acquire()
        try:
            found = await call
            outcome = "ok"
            return found
        finally:
            limiter.release(outcome)

    # -- reading -----------------------------------------------------------------------------------------------

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        check_key(key)
        return await self._in_loop(key, self._one(self._read(key, byte_range)))

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        for request in requests:
            check_key(request.key)
        return await self._in_loop("", self._fetch(requests))

    async def _fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        wanted = [(key, part) for key, ranges in requests for part in (ranges if ranges is not None else (None,))]
        bodies = iter(await asyncio.gather(*(self._one(self._read(key, part)) for key, part in wanted)))
        found: _List[_List[Buffer] | None] = []
        for _, ranges in requests:
            parts = [next(bodies) for _ in (ranges if ranges is not None else (None,))]
            present = [part for part in parts if part is not None]
            found.append(present if len(present) == len(parts) else None)
        return found

    async def _read(self, key: str, part: ByteRange | None) -> Buffer | None:
        from zarr.core.buffer import default_buffer_prototype

        prototype = default_buffer_prototype()
        try:
            if part is not None and part.stop is not None and part.stop <= part.start:
                return b"" if await self._exists(key) else None
            found = await self.store.get(key, prototype, byte_request(part))
        except Exception as error:
            if says_missing(error):
                return None
            # Some stores raise for a range that extends beyond the end.
            clamped = None if part is None else ByteRange(*part.bounds(await self.store.getsize(key)))
            if clamped is None or clamped == part:
                raise
            if clamped.start == clamped.stop:
                return b""
            found = await self.store.get(key, prototype, byte_request(clamped))
        return None if found is None else memoryview(found.to_bytes())

    async def exists_async(self, key: str) -> bool:
        check_key(key)
        return await self._in_loop(key, self._one(self._exists(key)))

    async def _exists(self, key: str) -> bool:
        try:
            if self._is_fsspec:  # `exists` is true of a directory, too
                info = await self.store.fs._info(f"{self.store.path.rstrip('/')}/{key}" if self.store.path else key)
                return bool(info["type"] != "directory")
            return bool(await self.store.exists(key))
        except Exception as error:
            if says_missing(error):  # Icechunk, for keys that are none of Zarr v3
                return False
            raise

    async def getsize_async(self, key: str) -> int | None:
        check_key(key)
        return await self._in_loop(key, self._one(self._getsize(key)))

    async def _getsize(self, key: str) -> int | None:
        try:
            return int(await self.store.getsize(key)) if await self._exists(key) else None
        except _MISSING:
            return None

    # -- writing -----------------------------------------------------------------------------------------------

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        check_key(key)
        if not isinstance(if_match, Any_):
            raise functions.no_conditional_writes(self, key)
        await self._in_loop(key, self._one(self._write(key, value)))
        return None

    async def _write(self, key: str, value: Buffer) -> None:
        from zarr.core.buffer import default_buffer_prototype

        buffer = default_buffer_prototype().buffer.from_bytes(bytes(byte_view(value)))
        try:
            await self.store.set(key, buffer)
        except IsADirectoryError:
            if not self._is_directory:
                raise
            remove_empty_tree(str(self.store.root / key))  # of values that were removed
            await self.store.set(key, buffer)

    async def replace_prefix_async(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        if not self._is_session:
            await super().replace_prefix_async(prefix, items)
            return
        # No caller sees a session between two steps, and it refuses the keys that others stage new values under.
        await self.delete_prefix_async(prefix)
        for key, value in items.items():
            await self.set_async(key, value)

    @property
    def _is_session(self) -> bool:
        """Whether the store is a session of Icechunk, whose changes others see when it is committed."""
        return is_session(self)

    @property
    def _is_directory(self) -> bool:
        """Whether the store is zarr-python's of a local directory."""
        return type(self.store).__name__ == "LocalStore"

    @property
    def _is_fsspec(self) -> bool:
        """Whether the store is zarr-python's over a filesystem of fsspec."""
        return type(self.store).__name__ == "FsspecStore"

    @property
    def _is_local(self) -> bool:
        """Whether the values are in local files or in the memory of this process."""
        kind = type(self.store)
        return kind.__module__.startswith("zarr.storage.") and kind.__name__ in _LOCAL_CLASSES

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: for a directory, the lock file of our `LocalStore`; else excludes threads of this process."""
        self._check_writable(key)
        if self._is_directory:
            from tessarr.stores.local.store import LocalStore

            return LocalStore(self.store.root).lock(key)
        check_key(key)
        return KEYED_LOCKS.hold((self.url, key))

    async def delete_async(self, key: str) -> None:
        await self.delete_many_async([key])

    async def delete_many_async(self, keys: Iterable[str]) -> None:
        every = [*keys]
        self._check_writable(every[0] if every else "")
        for key in every:
            check_key(key)
        await self._in_loop("", self._delete(every))

    async def _delete(self, keys: _List[str]) -> None:
        async def one(key: str) -> None:
            # Some stores take a prefix of other keys for a directory, and delete all keys below it; in Icechunk the chunks of
            # an array go with its document.
            if await self._exists(key):
                with suppress(*_MISSING):
                    await self.store.delete(key)

        await asyncio.gather(*(self._one(one(key)) for key in keys))

    async def delete_prefix_async(self, prefix: str) -> None:
        if not self._is_session:
            await super().delete_prefix_async(prefix)
            return
        self._check_writable(prefix)
        check_prefix(prefix)
        await self._in_loop(prefix, self._one(self.store.delete_dir(prefix.rstrip("/"))))

    # No fallbacks as those that they override: `has_ability` decides.

    def delete_prefix(self, prefix: str) -> None:
        self._run(self.delete_prefix_async(prefix))

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._run(self.replace_prefix_async(prefix, items))

    def rename_prefix(self, source: str, dest: str) -> bool:
        """See `RenamePrefix`. Each value is copied, that of a virtual reference too."""
        return self._run(self._rename_prefix(source, dest))

    async def _rename_prefix(self, source: str, dest: str) -> bool:
        keys = await self.list_prefix_async(source)
        if not keys or await self.list_prefix_async(dest):
            return False
        documents = [key for key in keys if key.rpartition("/")[2] in _DOCUMENTS]
        chunks = [key for key in keys if key.rpartition("/")[2] not in _DOCUMENTS]
        try:
            # Icechunk takes no chunk of an array that it does not know.
            for some in (documents, *(chunks[at : at + _PAGE] for at in range(0, len(chunks), _PAGE))):
                copies = (self._copy_key(key, dest + key.removeprefix(source)) for key in some)
                failed = [error for error in await asyncio.gather(*copies, return_exceptions=True) if error is not None]
                if failed:
                    raise failed[0]
        except BaseException:
            await self.delete_prefix_async(dest)
            raise
        await self.delete_prefix_async(source)
        return True

    async def _copy_key(self, key: str, new_key: str) -> None:
        value = await self.get_async(key)
        if value is not None:
            await self.set_async(new_key, value)

    # -- listing -----------------------------------------------------------------------------------------------

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        check_prefix(prefix)
        return await self._in_loop(prefix, self._list_prefix(prefix))

    async def _list_prefix(self, prefix: str) -> _List[str]:
        try:
            keys = self.store.list_prefix(prefix) if prefix else self.store.list()
            return [key async for key in keys if key.startswith(prefix) and not has_hidden_name(key)]
        except Exception as error:
            if _NO_NODE not in str(error):
                raise
        listed = await self._list_dir(prefix)
        below = await asyncio.gather(*(self._list_prefix(name) for name in listed.prefixes))
        return [*listed.keys, *chain.from_iterable(below)]

    async def list_dir_async(self, prefix: str) -> Listing:
        check_prefix(prefix)
        return await self._in_loop(prefix, self._list_dir(prefix))

    async def _is_key(self, key: str) -> bool:
        try:
            return await self._exists(key)
        except NotImplementedError:  # VirtualiZarr's store: names beside documents are nodes
            return key.rpartition("/")[2] in _DOCUMENTS

    async def _list_dir(self, prefix: str) -> Listing:
        try:
            listed = {name.strip("/") async for name in self.store.list_dir(prefix.rstrip("/"))}
            names = sorted(name for name in listed if name and not is_hidden(name))
            if self._is_fsspec and names == [prefix.rstrip("/")] and await self._exists(names[0]):
                names = []  # the list of a file is the file
        except _MISSING:
            names = []
        # zarr-python's listing does not distinguish keys from prefixes.
        are_keys = await asyncio.gather(*(self._one(self._is_key(prefix + name)) for name in names))
        keys = [prefix + name for name, is_key in zip(names, are_keys, strict=True) if is_key]
        return Listing(keys, [f"{prefix}{name}/" for name, is_key in zip(names, are_keys, strict=True) if not is_key])


def byte_request(part: ByteRange | None) -> object:
    """Convert `part` to zarr-python's byte request."""
    from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest

    if part is None:
        return None
    if part.start < 0:
        return SuffixByteRequest(-part.start)
    return OffsetByteRequest(part.start) if part.stop is None else RangeByteRequest(part.start, part.stop)


# -- pickles -------------------------------------------------------------------------------------------------------


class _PickledStore(NamedTuple):
    """The pickle of a store of zarr-python: the object that it wraps without credentials, and its other arguments."""

    kind: type[Any]
    url: str
    inner: Any
    options: dict[str, Any]

    def restore(self) -> Any:
        from tessarr.stores.remote.credentials import Recipe, build, restore_secrets

        if isinstance(self.inner, Recipe):
            return self.kind(build(self.inner, self.url), **self.options)
        filesystem, arguments = self.inner
        return self.kind(filesystem(**restore_secrets(self.url, arguments)), **self.options)


def _picklable(store: Any) -> object:
    """Return the object that is pickled in place of `store`."""
    from tessarr.stores.remote.credentials import recipe_of, strip_secrets, url_of

    kind = f"{type(store).__module__}.{type(store).__qualname__}"
    if kind == "zarr.storage._obstore.ObjectStore":
        try:
            recipe = recipe_of(store.store)
        except UnsupportedOperationError:  # in memory or on disk, without credentials; or it cannot be pickled
            return store
        return _PickledStore(type(store), url_of(store.store), recipe, {"read_only": store.read_only})
    if kind == "zarr.storage._fsspec.FsspecStore":
        from tessarr.stores.remote.fsspec import named_arguments

        protocol = store.fs.protocol if isinstance(store.fs.protocol, str) else store.fs.protocol[0]
        url = f"{protocol}://{store.path.lstrip('/')}"
        options = {"path": store.path, "read_only": store.read_only, "allowed_exceptions": store.allowed_exceptions}
        return _PickledStore(type(store), url, (type(store.fs), strip_secrets(url, named_arguments(store.fs))), options)
    return store
