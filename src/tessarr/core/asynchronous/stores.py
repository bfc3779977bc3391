"""Call stores written for zarr-python on top of `tessarr.abc.store.Store`, whose methods are coroutines.

The coroutines run in one background event loop, so that a store may keep objects bound to a loop (a client, a lock) between
calls. Such a store gets values as buffers of `tessarr.buffer.cpu`, byte ranges as the classes of `tessarr.abc.store`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tessarr.errors import TessarrError
from tessarr.facade.zarr3.buffer.cpu import buffer_prototype
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.remote.loop import close_threads
from tessarr.stores.virtual.zarr_python import ZarrPythonStore, says_missing
from tessarr.types import Buffer, ByteRange

T = TypeVar("T")
_lock = threading.Lock()
_loops: dict[int, tuple[asyncio.AbstractEventLoop, threading.Thread]] = {}
"""Event loops and their threads by process id: threads do not survive a fork, so that a forked child starts a new loop."""


def synchronous_store(store: Store) -> Store:
    """Return the synchronous store that runs the coroutines of `store`; the same object for every call."""
    known: Store | None = store.__dict__.get("_tessarr_caller")
    return known if known is not None else store.__dict__.setdefault("_tessarr_caller", CoroutineStore(store))


class CoroutineStore(ZarrPythonStore):
    """A synchronous store over `store`, whose methods are coroutines."""

    def __init__(self, store: object, *, read_only: bool = False) -> None:
        super().__init__(store, read_only=read_only)
        self.requests_at_once = 16

    @property
    def _is_local(self) -> bool:
        return False

    @property
    def url(self) -> str:
        default = f"{type(self.store).__name__.lower()}://{id(self.store):x}"
        names = (str(getattr(self.store, "url", "")), str(self.store))
        return next((name for name in names if "://" in name and " " not in name and name != default), default)

    def _loop(self) -> asyncio.AbstractEventLoop:
        return _loop()

    def _run(self, call: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop()).result()

    async def _open(self) -> None:
        """Do nothing: these stores need not be opened."""

    async def _guarded(self, key: str, call: Coroutine[object, object, T]) -> T:
        """Await `call`. An error of the user's store is raised as it is, with a note of the place: callers know its class."""
        try:
            return await call
        except TessarrError:
            raise
        except Exception as error:
            error.add_note(f"in store {self.url}" + (f", key {key!r}" if key else ""))
            raise

    async def _read(self, key: str, part: ByteRange | None) -> Buffer | None:
        if part is not None and part.stop is not None and part.stop <= part.start:
            return b"" if await self._exists(key) else None
        try:
            found = await self.store.get(key, buffer_prototype, _request(part))
        except Exception as error:
            if not says_missing(error):
                raise
            return None
        return None if found is None else memoryview(found.to_bytes() if hasattr(found, "to_bytes") else found)

    async def _getsize(self, key: str) -> int | None:
        if asyncio.iscoroutinefunction(self.store.getsize):
            return await super()._getsize(key)
        value = await self._read(key, None)
        return None if value is None else byte_view(value).nbytes

    async def _write(self, key: str, value: Buffer) -> None:
        await self.store.set(key, buffer_prototype.buffer.from_bytes(bytes(byte_view(value))))

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return (type(self).__qualname__, self.store, self.read_only)

    def __reduce__(self) -> tuple[object, ...]:
        store = self.store.__reduce_ex__(2)
        state = {name: value for name, value in (store[2] or {}).items() if name not in ("_tessarr", "_tessarr_caller")}
        return _rebuild, (store[0], store[1], state, self.read_only)


def _rebuild(make: Any, arguments: tuple[Any, ...], state: dict[str, object], read_only: bool) -> CoroutineStore:
    store = make(*arguments)
    getattr(store, "__setstate__", store.__dict__.update)(state)
    if hasattr(type(store), "__tessarr_place__"):
        place: CoroutineStore = store.__tessarr_place__()[0]
        return place
    return CoroutineStore(store, read_only=read_only)


def _request(part: ByteRange | None) -> ByteRange | None:
    from tessarr.facade.zarr3.abc._values import OffsetByteRequest, RangeByteRequest, SuffixByteRequest

    if part is None or isinstance(part, RangeByteRequest | OffsetByteRequest | SuffixByteRequest):
        return part
    if part.start < 0:
        return SuffixByteRequest(-part.start)
    return OffsetByteRequest(part.start) if part.stop is None else RangeByteRequest(part.start, part.stop)


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        if os.getpid() not in _loops:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="tessarr-stores", daemon=True)
            _loops[os.getpid()] = loop, thread
            thread.start()
        return _loops[os.getpid()][0]


def close_loop() -> None:
    """End the background loop, its threads, and those of the pools; the next call starts others. Calls in them end before."""
    with _lock:
        loop, thread = _loops.pop(os.getpid(), (None, None))
    if loop is not None and thread is not None:
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
    close_threads()
