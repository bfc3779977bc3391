"""The native engine: one call into Rust per request.

A bound array is described to `tessarr._native` once, as JSON in the vocabulary of Zarr v3 (see
`tessarr.engine.native.describe`); every read and write is then one call, in which planning, I/O, decoding and scattering
happen without the GIL. `NativeEngine.supports` says what it leaves to the reference engine: variable-length elements, codecs
of other packages, and codecs whose results only NumPy defines. What it serves it serves alone: the engine of an array never
changes after opening. Local files are read and written by Rust itself, near stores are called by it for many values at
once, and what `tessarr.engine.remote_read` fetches from stores behind a network is decoded as it comes; `bytes` are nowhere
copied.

Chunks that were decoded to read parts of them are kept in one cache per process (``config["cache.nbytes"]``, 128 MiB unless
set, 0 switches it off). One is used only while the value it came from is known to be the same: by the device, inode,
modification time and size of a local file, by the version that a store behind a network tells.

Raises `ImportError` on import where the Rust module was not built.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tessarr import _native
from tessarr.common.segments import Piece, Stored
from tessarr.engine.base import Reading
from tessarr.engine.bound import BoundArray
from tessarr.engine.native.describe import describe, is_local
from tessarr.engine.native.step import UnsupportedError
from tessarr.engine.processors import processors
from tessarr.engine.remote_read import read_waves, read_waves_async
from tessarr.engine.write_chunks import ChunkWrite, put, store_chunks, store_chunks_async
from tessarr.errors import (
    ChecksumError,
    ChunkNotFoundError,
    CodecError,
    DurabilityError,
    ShardIndexError,
    StoreError,
    TessarrError,
)
from tessarr.indexing.selection import Points, Selection
from tessarr.settings import is_strict
from tessarr.stores.base import Fetch, Store
from tessarr.stores.fetch import Asker, Question, Reply
from tessarr.stores.memory.store import MemoryStore
from tessarr.types import Buffer, ByteRange

_ERRORS: dict[str, type[TessarrError]] = {
    error.kind: error
    for error in (CodecError, ChecksumError, ShardIndexError, ChunkNotFoundError, StoreError, DurabilityError)
}
_SMALL_SHARD = 64 << 10
"""In bytes, decoded: less than this is fetched with one call rather than with two."""


class _Handle:
    """A bound array and what stands for it in Rust."""

    __slots__ = ("array", "bound", "plain", "view")

    def __init__(self, bound: BoundArray) -> None:
        self.bound = bound
        self.view = _view_dtype(bound.dtype)
        self.plain = self.view is None and bool(bound.shape)
        try:
            description = json.dumps(describe(bound))
            scratch = np.empty(1, bound.dtype) if self.plain else None
            near = (
                None
                if is_local(bound.store) or bound.store.is_remote
                else (_Near(bound.store), _whole_below(bound.store))
            )
            self.array = _native.Array(description, near, scratch)
        except _native.NativeError as error:
            kind, what, _ = error.args
            raise UnsupportedError(what if kind == "unsupported" else f"{kind}: {what}") from error

    def buffer(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """`array` as something whose memory the buffer protocol gives out; a 0-d array as one element."""
        if self.view is not None:
            array = array.view(self.view)
        return array if array.ndim else array.reshape(1)


class NativeEngine:
    """See `tessarr.engine.base.Engine`. An instance remembers the array that it served last."""

    name = "native"
    __slots__ = ("_handle",)

    def __init__(self) -> None:
        self._handle: _Handle | None = None

    def supports(self, bound: BoundArray) -> str | None:
        """See `Engine.supports`."""
        if bound.dtype.kind == "b" and is_strict():
            return "in strict mode every stored bool is checked"
        try:
            self._bind(bound)
        except UnsupportedError as reason:
            return str(reason)
        return None

    def _bind(self, bound: BoundArray) -> _Handle:
        handle = self._handle
        if handle is None or handle.bound is not bound:
            _apply_settings()
            handle = self._handle = _Handle(bound)
        return handle

    def read(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """See `Engine.read`."""
        handle = self._handle
        if handle is None or handle.bound is not bound:
            handle = self._bind(bound)
        if bound.store.is_remote:
            read_waves(bound.store, [_Reading(handle, selection, out)])
            return
        buffer = out if handle.plain else handle.buffer(out)
        try:
            handle.array.read(*_at(selection), buffer)
        except _native.NativeError as error:
            _raise(error, bound)

    def reading(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> Reading:
        """See `Engine.reading`."""
        return _Reading(self._bind(bound), selection, out)

    def element(self, bound: BoundArray, index: tuple[object, ...]) -> Any:
        """The element at `index` as a NumPy scalar; ``None`` unless `index` is one plain `int` inside the array per axis.

        The short way of `read`: no selection is planned and no result shaped.
        """
        handle = self._handle
        if handle is None or handle.bound is not bound:
            handle = self._bind(bound)
        try:
            return handle.array.element(index)
        except _native.NativeError as error:
            _raise(error, bound)

    async def read_async(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """See `Engine.read_async`."""
        if bound.store.is_remote:
            await read_waves_async(bound.store, [self.reading(bound, selection, out)])
        else:
            import asyncio

            await asyncio.to_thread(self.read, bound, selection, out)

    def write(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write`."""
        handle = self._bind(bound)
        bound.store._check_writable(bound.path)
        try:
            if bound.store.is_remote:
                store_chunks(bound, _Writes(handle, selection, value))
                return
            buffer = handle.buffer(np.broadcast_to(value, selection.shape))
            handle.array.write(*_at(selection), buffer)
        except _native.NativeError as error:
            _raise(error, bound)

    async def write_async(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write_async`."""
        if not bound.store.is_remote:
            import asyncio

            await asyncio.to_thread(self.write, bound, selection, value)
            return
        handle = self._bind(bound)
        bound.store._check_writable(bound.path)
        try:
            await store_chunks_async(bound, _Writes(handle, selection, value))
        except _native.NativeError as error:
            _raise(error, bound)


def _at(selection: Selection) -> tuple[tuple[slice | npt.NDArray[np.int64], ...], bool]:
    """How Rust is told a selection, and whether it is one of points."""
    return (selection.coords, True) if isinstance(selection, Points) else (selection.dims, False)


class _Reading:
    """See `tessarr.engine.base.Reading`."""

    def __init__(self, handle: _Handle, selection: Selection, out: npt.NDArray[Any]) -> None:
        self._bound = handle.bound
        self._native = handle.array.reading(*_at(selection), handle.buffer(out))

    def __len__(self) -> int:
        return len(self._native)

    @property
    def nbytes(self) -> int:
        return self._native.nbytes

    def start(self, first: int, stop: int, small: int) -> Asker:
        try:
            return _Asker(self._bound, self._native.start(first, stop, small))
        except _native.NativeError as error:
            _raise(error, self._bound)


class _Asker:
    """Some parts of a `_Reading`."""

    def __init__(self, bound: BoundArray, waves: Any) -> None:
        self._bound = bound
        self._waves = waves

    def asks(self) -> list[Question]:
        return [Question(number, _fetch(key, ranges)) for number, key, ranges in self._waves.asks()]

    def answer(self, replies: Sequence[Reply]) -> None:
        try:
            self._waves.answer(replies)
        except _native.NativeError as error:
            _raise(error, self._bound)


class _Writes:
    """See `tessarr.engine.write_chunks.Writes`."""

    def __init__(self, handle: _Handle, selection: Selection, value: npt.NDArray[Any]) -> None:
        self._bound = handle.bound
        self.forget = handle.array.forget
        buffer = handle.buffer(np.broadcast_to(value, selection.shape))
        self._native = handle.array.writing(*_at(selection), buffer)

    def __len__(self) -> int:
        return len(self._native)

    @property
    def nbytes(self) -> int:
        return self._bound.nbytes(self._native.part(0)[0])

    def __iter__(self) -> Iterator[ChunkWrite]:
        for number in range(len(self._native)):
            yield ChunkWrite(*self._native.part(number), partial(self._change, number))

    def _change(self, number: int, old: Stored | None) -> list[Piece] | None:
        try:
            new = self._native.encode(number, None if old is None else old.read(ByteRange(0)))
        except _native.NativeError as error:
            _raise(error, self._bound)
        return None if new is None else [new]


def _apply_settings() -> None:
    from tessarr.settings import config

    # Rust would find it out by itself (0), but reads the control groups anew each time.
    _native.set_threads(config.get("threading.max_workers", None) or processors())
    _native.set_cache_bytes(config.get("cache.nbytes", _native.DEFAULT_CACHE_BYTES))


def cache_info() -> dict[str, int]:
    """See `tessarr.engine.native.chunk_cache.chunk_cache_info`."""
    _apply_settings()
    return _native.cache_info()


def _raise(error: _native.NativeError, bound: BoundArray) -> NoReturn:
    """The typed error for one of the Rust module."""
    kind, what, facts = error.args
    errno = facts.pop("errno")
    chunk = facts.pop("chunk")
    known = {name: value for name, value in facts.items() if value is not None}
    if chunk is not None:
        known["chunk"] = tuple(chunk)
    typed = _ERRORS.get(kind, TessarrError)(what, store=bound.store.url, path="/" + bound.path, **known)
    if errno is not None and isinstance(typed, OSError):
        typed.errno = errno
    raise typed from None


def _view_dtype(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The dtype to view elements as where NumPy does not give out their own as a buffer (dates, other packages')."""
    plain = dtype.kind in "biufc" and dtype.num <= np.dtype(np.float16).num
    return None if plain else np.dtype((np.void, dtype.itemsize))


class _Near:
    """A store that is neither local files nor behind a network, as Rust calls it."""

    __slots__ = ("_fetch", "put", "update")

    def __init__(self, store: Store) -> None:
        self._fetch = store.fetch
        self.put = partial(put, store)
        self.update = store.update

    def fetch(self, requests: list[tuple[str, list[tuple[int, int | None]] | None]]) -> list[list[Buffer] | None]:
        """Whole values or ranges of them (`None` or pairs as in `ByteRange`), all asked for at once."""
        return self._fetch([_fetch(key, ranges) for key, ranges in requests])


def _fetch(key: str, ranges: Iterable[tuple[int, int | None]] | None) -> Fetch:
    return Fetch(key, None if ranges is None else tuple(ByteRange(*part) for part in ranges))


def _whole_below(store: Store) -> int:
    """Shards of at most so many decoded bytes are fetched whole.

    In memory a part of a value costs what the value costs, and many stores know no parts.
    """
    if isinstance(store, MemoryStore):
        return sys.maxsize
    while isinstance(inner := getattr(store, "store", None), Store):
        store = inner
    return _SMALL_SHARD if type(store).get_ranges is not Store.get_ranges else sys.maxsize
