"""The native engine: one call into Rust per request.

A bound array is described to `tessarr._native` once, as JSON in the vocabulary of Zarr v3 (see
`tessarr.engine.native.describe`); every read and write is then one call, in which planning, I/O, decoding and scattering
happen without the GIL. `NativeEngine.supports` says what it leaves to the reference engine: variable-length elements, codecs
of other packages, and codecs whose results only NumPy defines. What it serves it serves alone: the engine of an array never
changes after opening. Local files are read and written by Rust itself. For any other store Rust plans what to request and
decodes the responses, and `tessarr.engine.run` sends the requests; `bytes` are nowhere copied. What sends requests is imported
with the first one, because most programs read local files.

Chunks that were decoded to read parts of them are kept in one cache per process (``config["cache.nbytes"]``, 128 MiB unless
set, 0 switches it off). One is used only while the value it came from is known to be the same: by the device, inode,
modification time and size of a local file, by the version that a store behind a network tells.

Raises `ImportError` on import where the Rust module was not built.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tessarr import _native
from tessarr.common.segments import Piece, Stored
from tessarr.engine.base import ChunkWrite, ReadPlan, Request, Response, WritePlan
from tessarr.engine.bound import BoundArray
from tessarr.engine.native.describe import describe
from tessarr.engine.native.step import UnsupportedError
from tessarr.engine.processors import processors
from tessarr.errors import (
    ChecksumError,
    ChunkNotFoundError,
    CodecError,
    ConflictError,
    DurabilityError,
    ShardIndexError,
    StoreError,
    TessarrError,
)
from tessarr.indexing.selection import Points, Selection
from tessarr.settings import is_strict
from tessarr.stores.fetch import Fetch
from tessarr.stores.functions import lock
from tessarr.stores.protocols import Locate, PlainFiles
from tessarr.types import AnyArray, AnyDType, Buffer, ByteRange

if TYPE_CHECKING:
    import numpy.typing as npt

    from tessarr.stores.base import Version
    from tessarr.stores.local.transactions.many import StagedFiles

_ERRORS: dict[str, type[TessarrError]] = {
    error.kind: error
    for error in (CodecError, ChecksumError, ShardIndexError, ChunkNotFoundError, StoreError, DurabilityError)
}


_ATTEMPTS = 100
"""To write parts of chunks that transactions are changing."""


class _Handle:
    """A bound array and its counterpart in Rust."""

    __slots__ = ("array", "bound", "local", "located", "plain", "view")

    def __init__(self, bound: BoundArray) -> None:
        self.bound = bound
        self.local = isinstance(bound.store, PlainFiles)
        """Whether Rust reads and writes the files of the store."""
        store = bound.store
        self.located = store if isinstance(store, Locate) and store.read_only and os.name != "nt" else None
        """The store, if Rust may read extents of files that it locates: not where writes move its values, nor on Windows, where
        Rust does not distinguish files."""
        self.view = _view_dtype(bound.dtype)
        self.plain = self.view is None and bool(bound.shape)
        try:
            description = describe(bound)
            scratch = np.empty(1, bound.dtype) if self.plain else None
            self.array = _native.Array(description, scratch)
        except _native.NativeError as error:
            kind, what, _ = error.args
            raise UnsupportedError(what if kind == "unsupported" else f"{kind}: {what}") from error

    def buffer(self, array: AnyArray) -> AnyArray:
        """View `array` as an array whose dtype the buffer protocol supports; a 0-d array as one element."""
        if self.view is not None:
            array = array.view(self.view)
        return array if array.ndim else array.reshape(1)


class NativeEngine:
    """See `tessarr.engine.base.Engine`. An instance caches the array that it served last."""

    name = "native"
    __slots__ = ("_handle",)

    def __init__(self) -> None:
        self._handle: _Handle | None = None

    def supports(self, bound: BoundArray) -> str | None:
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

    def plan_read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> ReadPlan:
        handle = self._bind(bound)
        return _read_plan(handle, _plan(handle, selection, out))

    def plan_write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> WritePlan:
        return _WritePlan(self._bind(bound), selection, value)

    def read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        """See `Engine.read`. Local files are read by one call into Rust."""
        handle = self._handle
        if handle is None or handle.bound is not bound:
            handle = self._bind(bound)
        buffer = out if handle.plain else handle.buffer(out)
        at = (selection.coords, True) if isinstance(selection, Points) else (selection.dims, False)
        if not handle.local:
            plan = handle.array.plan_read(*at, buffer)
            if handle.located is None or not _read_located(handle, handle.located, plan):
                from tessarr.engine.run import run

                run([_read_plan(handle, plan)], bound.access)
            return
        try:
            handle.array.read(*at, buffer)
        except _native.NativeError as error:
            _raise(error, bound)

    async def read_async(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        handle = self._bind(bound)
        if handle.local:
            import asyncio

            await asyncio.to_thread(self.read, bound, selection, out)
            return
        plan = _plan(handle, selection, out)
        if handle.located is not None:
            import asyncio

            if await asyncio.to_thread(_read_located, handle, handle.located, plan):
                return
        from tessarr.engine.run import run_async

        await run_async([_read_plan(handle, plan)], bound.access)

    def element(self, bound: BoundArray, index: tuple[object, ...]) -> Any:
        """Read the element at `index` as a NumPy scalar; ``None`` unless `index` is one `int` within the array per axis.

        Faster than `read`, because no selection is planned and no result is shaped.
        """
        handle = self._handle
        if handle is None or handle.bound is not bound:
            handle = self._bind(bound)
        try:
            return handle.array.element(index)
        except _native.NativeError as error:
            _raise(error, bound)

    def write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        """See `Engine.write`. Local files are written by one call into Rust."""
        handle = self._bind(bound)
        bound.store._check_writable(bound.path)
        if not handle.local:
            from tessarr.engine.write_chunks import store_chunks

            store_chunks(bound, _WritePlan(handle, selection, value))
            return
        buffer = handle.buffer(np.broadcast_to(value, selection.shape))
        for _ in range(_ATTEMPTS):
            try:
                handle.array.write(*_at(selection), buffer)
            except _native.NativeError as error:
                if error.args[0] != "marked":
                    _raise(error, bound)
                _settle(bound, error.args[2]["chunk"])
            else:
                return
        raise ConflictError(
            "transactions were changing a chunk during every attempt to write a part of it",
            store=bound.store.url,
            path=f"/{bound.path}",
            got=f"{_ATTEMPTS} attempts",
            hint="Retry",
        )

    async def write_async(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        handle = self._bind(bound)
        if handle.local:
            import asyncio

            await asyncio.to_thread(self.write, bound, selection, value)
            return
        bound.store._check_writable(bound.path)
        from tessarr.engine.write_chunks import store_chunks_async

        await store_chunks_async(bound, _WritePlan(handle, selection, value))


def _settle(bound: BoundArray, coords: Sequence[int]) -> None:
    """Wait for, or complete, the transaction that left a mark in the lock file of a chunk: a store does before it locks."""
    with lock(bound.store, bound.key(tuple(coords))):
        pass


def _at(selection: Selection) -> tuple[tuple[slice | npt.NDArray[np.int64], ...], bool]:
    """Return a selection as Rust takes it, and whether it is one of points."""
    return (selection.coords, True) if isinstance(selection, Points) else (selection.dims, False)


def _plan(handle: _Handle, selection: Selection, out: AnyArray) -> _native.ReadPlan:
    return handle.array.plan_read(*_at(selection), out if handle.plain else handle.buffer(out))


def _read_plan(handle: _Handle, plan: _native.ReadPlan) -> ReadPlan:
    start = partial(_ChunkReads, handle.bound, plan)
    return ReadPlan(len(plan), plan.nbytes, handle.bound.has_shards, start)


def _read_located(handle: _Handle, store: Locate, plan: _native.ReadPlan) -> bool:
    """Read from extents of local files, if all values are there."""
    from tessarr.engine.native.extents import read_extents

    try:
        return read_extents(store, plan, handle.bound.access)
    except _native.NativeError as error:
        _raise(error, handle.bound)


class _ChunkReads:
    """The chunk reads of a run of parts, which Rust carries on."""

    __slots__ = ("_bound", "_native")

    def __init__(self, bound: BoundArray, plan: _native.ReadPlan, first: int, stop: int, whole_below: int) -> None:
        self._bound = bound
        try:
            self._native = plan.start(first, stop, whole_below)
        except _native.NativeError as error:
            _raise(error, bound)

    def receive(self, responses: Sequence[Response]) -> list[Request]:
        try:
            if responses:
                self._native.receive(responses)
            needs = self._native.requests()
        except _native.NativeError as error:
            _raise(error, self._bound)
        return [
            Request(number, Fetch(key, None if ranges is None else tuple(map(ByteRange._make, ranges))))
            for number, key, ranges in needs
        ]


class _WritePlan:
    """The changes of chunks by a write, which Rust encodes."""

    def __init__(self, handle: _Handle, selection: Selection, value: AnyArray) -> None:
        self._bound = handle.bound
        self.forget = handle.array.forget
        buffer = handle.buffer(np.broadcast_to(value, selection.shape))
        self._native = handle.array.plan_write(*_at(selection), buffer)

    def __len__(self) -> int:
        return len(self._native)

    @property
    def nbytes(self) -> int:
        return self._bound.nbytes(self._native.part(0)[0])

    def __iter__(self) -> Iterator[ChunkWrite]:
        for number in range(len(self._native)):
            coords, key, covers = self._native.part(number)
            is_cut = not covers and self._native.is_cut(number)
            yield ChunkWrite(coords, key, covers, is_cut, partial(self._change, number))

    def encode_covered(self, first: int, stop: int) -> Sequence[tuple[str, Buffer | None]] | None:
        try:
            return self._native.encode_covered(first, stop)
        except _native.NativeError as error:
            _raise(error, self._bound)

    def stage_covered(
        self, first: int, stop: int, files: StagedFiles
    ) -> Sequence[tuple[str, tuple[Version, int] | None]] | None:
        if files.native is None:
            return None
        try:
            return self._native.stage_covered(first, stop, files.native)
        except _native.NativeError as error:
            _raise(error, self._bound)

    def _change(self, number: int, old: Stored | None) -> list[Piece] | None:
        try:
            new = self._native.encode(number, None if old is None else old.read(ByteRange(0)))
        except _native.NativeError as error:
            _raise(error, self._bound)
        return None if new is None else [new]


def _apply_settings() -> None:
    from tessarr.settings import config

    # Rust would find the number by itself (0), but reads the control groups each time.
    _native.set_threads(config.get("threading.max_workers", None) or processors())
    _native.set_cache_bytes(config.get("cache.nbytes", _native.DEFAULT_CACHE_BYTES))


def cache_info() -> dict[str, int]:
    """Report size and use of the cache of decoded chunks, after the settings are applied."""
    _apply_settings()
    return _native.cache_info()


def _raise(error: _native.NativeError, bound: BoundArray) -> NoReturn:
    """Raise the typed error for an error of the Rust module."""
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


def _view_dtype(dtype: AnyDType) -> AnyDType | None:
    """Return the dtype to view elements as, if NumPy does not export theirs by the buffer protocol (dates, other packages')."""
    plain = dtype.kind in "biufc" and dtype.num <= np.dtype(np.float16).num
    return None if plain else np.dtype((np.void, dtype.itemsize))
