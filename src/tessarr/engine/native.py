"""The native engine: one call into Rust per request.

A bound array is described to `tessarr._native` once, as JSON in the vocabulary of Zarr v3 (`describe`); every read and
write is then one call, in which planning, I/O, decoding and scattering happen without the GIL. `NativeEngine.supports`
says what it leaves to the reference engine: variable-length elements, codecs of other packages and the rare ones, and
remote stores. A request that meets a value whose result Rust cannot promise to be NumPy's is handed over as a whole.
Local files are read and written by Rust itself; the values of any other store are asked for in batches, `bytes` among
them without a copy.

Decoded chunks of compressed local files that were read in part are kept in one cache per process
(``config["cache.nbytes"]``, 128 MiB unless set, 0 switches it off); an entry is used only while the file's device, inode,
modification time and size are those it was read with.

Raises `ImportError` on import where the Rust module was not built.
"""

from __future__ import annotations

import asyncio
import json
from math import prod
from types import ModuleType
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from tessarr import _native
from tessarr.codecs.base import BytesToBytes
from tessarr.codecs.bytes import BytesCodec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.transpose import TransposeCodec
from tessarr.engine.bound import BoundArray
from tessarr.engine.reference import ReferenceEngine
from tessarr.errors import (
    ChecksumError,
    ChunkNotFoundError,
    CodecError,
    ShardIndexError,
    StoreError,
    TessarrError,
)
from tessarr.grids.base import Axis
from tessarr.indexing.selection import Points, Selection
from tessarr.settings import is_strict
from tessarr.stores.base import Fetch, Store
from tessarr.stores.filelock import NAME_BYTES
from tessarr.stores.local import LocalStore
from tessarr.stores.memory import MemoryStore
from tessarr.types import JSON, Buffer, ByteRange, JSONObject

_ERRORS: dict[str, type[TessarrError]] = {
    error.kind: error for error in (CodecError, ChecksumError, ShardIndexError, ChunkNotFoundError, StoreError)
}
_REFERENCE = ReferenceEngine()
_GIVEN_UP = "reference"
"""The kind of error that means: ask the reference engine (`tessarr.engine.native_filters`)."""
_KEYS = ("tessarr.keys.default", "tessarr.keys.v2")
_LARGEST_CHUNK = 1 << 32
"""In bytes. Rust ends the process when there is no memory; NumPy raises `MemoryError`."""


_SMALL_SHARD = 64 << 10
"""In bytes, decoded: less than this is fetched with one call rather than with two."""


class UnsupportedError(Exception):
    """The array holds something that the native engine does not know; the text says what."""


def named(name: str, configuration: JSONObject) -> JSONObject:
    """A codec as the Rust module is told of it."""
    return {"name": name, "configuration": configuration}


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
            self.array = _native.Array(description, None if _is_local(bound.store) else _Bytes(bound.store), scratch)
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
        buffer = out if handle.plain else handle.buffer(out)
        try:
            if isinstance(selection, Points):
                handle.array.read_points(selection.coords, buffer)
            else:
                handle.array.read(selection.dims, buffer)
        except _native.NativeError as error:
            if error.args[0] != _GIVEN_UP:
                _raise(error, bound)
            _REFERENCE.read(bound, selection, out)

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
            if error.args[0] != _GIVEN_UP:
                _raise(error, bound)
            return None

    async def read_async(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """See `Engine.read_async`."""
        await asyncio.to_thread(self.read, bound, selection, out)

    def write(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write`."""
        handle = self._bind(bound)
        bound.store._check_writable(bound.path)
        buffer = handle.buffer(np.broadcast_to(value, selection.shape))
        try:
            if isinstance(selection, Points):
                handle.array.write_points(selection.coords, buffer)
            else:
                handle.array.write(selection.dims, buffer)
        except _native.NativeError as error:
            if error.args[0] != _GIVEN_UP:
                _raise(error, bound)
            _REFERENCE.write(bound, selection, value)

    async def write_async(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write_async`."""
        await asyncio.to_thread(self.write, bound, selection, value)


def _apply_settings() -> None:
    from tessarr.settings import config

    _native.set_threads(config.get("threading.max_workers", None) or 0)
    _native.set_cache_bytes(config.get("cache.nbytes", _native.DEFAULT_CACHE_BYTES))


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


# -- the description -----------------------------------------------------------------------------------------------------


def describe(bound: BoundArray) -> JSONObject:
    """What `tessarr._native.Array` is made from. Raises `UnsupportedError`."""
    data_type = bound.metadata.data_type
    if data_type.itemsize is None or bound.dtype.hasobject:
        raise UnsupportedError(f"elements of the data type {data_type.name} differ in size")
    if prod(map(_longest, bound.axes)) * data_type.itemsize > _LARGEST_CHUNK:
        raise UnsupportedError("chunks of more than 4 GiB, for which there may be no memory")
    encoding = bound.metadata.chunk_key_encoding
    if type(encoding).__module__ not in _KEYS:
        raise UnsupportedError(f"the chunk key encoding {encoding.name!r}")
    longest = encoding.encode(tuple(max(0, axis.nchunks - 1) for axis in bound.axes)).rpartition("/")[2]
    if len(longest) > NAME_BYTES:
        raise UnsupportedError("chunk names that are too long to be part of the names of their lock files")
    first = encoding.encode((0,))
    prefix = f"{bound.path}/" if bound.path else ""
    shape = tuple(axis.size(0) if axis.nchunks else (axis.uniform or 1) for axis in bound.axes)
    key: JSONObject = {
        "prefix": prefix + first.removesuffix("0"),
        "separator": encoding.encode((0, 0)).removeprefix(first).removesuffix("0"),
        "empty": prefix + encoding.encode(()),
    }
    return {
        "shape": list(bound.shape),
        "axes": [_axis(axis) for axis in bound.axes],
        "item": data_type.itemsize,
        "fill": list(bound.fill.astype(bound.dtype).tobytes()),
        "key": key,
        "codecs": _chain(bound.chain(shape)),
        "store": _store(bound),
        "write_empty_chunks": bound.options.write_empty_chunks or not bound.store.supports_deletes,
        "read_missing": bound.options.read_missing_chunks,
        "durable": bool(getattr(bound.store, "durable", False)),
    }


def _is_local(store: Store) -> bool:
    """Whether the store is files that may be read and written as `LocalStore` does."""
    names = ("get", "get_ranges", "set", "delete", "lock", "update", "splice")
    return isinstance(store, LocalStore) and all(getattr(type(store), n) is getattr(LocalStore, n) for n in names)


def _store(bound: BoundArray) -> JSONObject:
    store = bound.store
    if _is_local(store):
        assert isinstance(store, LocalStore)
        if not store.file_locks:
            raise UnsupportedError("a local store without file locks")
        return {"kind": "local", "root": store._base}
    if store.is_remote:
        raise UnsupportedError(f"{type(store).__name__} is remote, where the reference engine overlaps requests")
    return {"kind": "python"}


class _Bytes:
    """A store that is no directory, as Rust sees it."""

    __slots__ = ("_fetch", "delete", "ranged", "set", "update")

    def __init__(self, store: Store) -> None:
        self._fetch = store.fetch
        # Shards of more decoded bytes than this are asked for in parts.
        self.ranged = _SMALL_SHARD if _gives_ranges(store) else None
        self.set = store.set
        self.delete = store.delete
        self.update = store.update

    def fetch(self, keys: list[str]) -> list[Buffer | None]:
        """Whole values, all asked for at once."""
        return [None if parts is None else parts[0] for parts in self._fetch([Fetch(key) for key in keys])]

    def fetch_ranges(self, requests: list[tuple[str, list[ByteRange] | None]]) -> list[list[Buffer] | None]:
        """Whole values or ranges of them (`None` or pairs as in `ByteRange`), all asked for at once."""
        return self._fetch(
            [
                Fetch(key, None if parts is None else tuple(ByteRange(*part) for part in parts))
                for key, parts in requests
            ]
        )


def _gives_ranges(store: Store) -> bool:
    """Whether a part of a value costs less than the value: in memory neither costs, and many stores know no parts."""
    if isinstance(store, MemoryStore):
        return False
    while isinstance(inner := getattr(store, "store", None), Store):
        store = inner
    return type(store).get_ranges is not Store.get_ranges


def _longest(axis: Axis) -> int:
    """The length of the longest chunk along `axis`."""
    return axis.uniform or max(map(axis.size, range(axis.nchunks)), default=1)


def _axis(axis: Axis) -> JSONObject:
    if axis.uniform is not None or not axis.nchunks:
        return {"size": axis.uniform or 1}
    last = axis.nchunks - 1
    return {"offsets": [*(axis.start(index) for index in range(axis.nchunks)), axis.start(last) + axis.size(last)]}


def _chain(chain: BoundChain) -> list[JSON]:
    codecs, filters = _before(chain)
    middle, spec = chain.middle, chain.middle_spec
    if chain.shard is not None:
        layout = chain.shard
        if filters is not None:
            raise UnsupportedError("filters before the sharding codec")
        if layout.codec.subchunk_write_order not in ("lexicographic", "unordered"):
            raise UnsupportedError(f"inner chunks written in {layout.codec.subchunk_write_order} order")
        codecs.append(
            named(
                "sharding_indexed",
                {
                    "chunk_shape": list(layout.codec.chunk_shape),
                    "codecs": _chain(layout.inner),
                    "index_codecs": _chain(layout._index_chain),
                    "index_location": layout.codec.index_location,
                },
            )
        )
    else:
        swap: list[JSON] = []
        if isinstance(middle, BytesCodec):
            swap = _swap(spec.dtype, middle.stored_dtype(spec))
        else:
            filters = [*(filters or ()), _lazy().packing(middle, spec)]
        if filters is not None and swap:
            filters, swap = [*filters, _lazy().swapping(swap, spec.dtype.itemsize)], []
        codecs.append(named("bytes", {"swap": swap, "boolean": chain.spec.dtype.kind == "b"}))
        codecs += filters or ()
    flow = middle.stored_dtype(spec) if isinstance(middle, BytesCodec) else np.dtype(np.uint8)
    for codec in chain.after:
        step, flow = _step(codec, flow)
        codecs += [] if step is None else [step]
    return codecs


def _before(chain: BoundChain) -> tuple[list[JSON], list[JSON] | None]:
    """The transpositions, and the filters as steps between bytes; ``None`` when there is nothing but transpositions."""
    codecs: list[JSON] = []
    filters: list[JSON] | None = None
    moved = False
    for codec, spec in chain.before:
        if isinstance(codec, TransposeCodec):
            order = codec.permutation(len(spec.shape))
            if moved and list(order) != sorted(order):
                raise UnsupportedError("a transposition behind a codec that looks at several elements")
            codecs += [] if moved else [named("transpose", {"order": list(order)})]
            continue
        step = _lazy().element_step(codec, spec)
        filters = [*(filters or ()), *([] if step is None else [step])]
        moved = moved or _lazy().moves(codec)
    return codecs, filters


def _lazy() -> ModuleType:
    """`tessarr.engine.native_filters`, which most arrays do not need."""
    from tessarr.engine import native_filters

    return native_filters


_STEPS = frozenset(
    (
        "blosc", "gzip", "zlib", "zstd", "lz4", "bz2", "shuffle",
        "crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3",
    )
)  # fmt: skip
_FILTERS = frozenset(("delta", "fixedscaleoffset", "quantize", "astype", "bitround", "packbits"))


def _step(codec: BytesToBytes, flow: np.dtype[Any]) -> tuple[JSONObject | None, np.dtype[Any]]:
    """A bytes → bytes codec, given elements of `flow`, and what it gives: one of the specification, or numcodecs' of the
    same name (`coder` holds its members)."""
    coder = getattr(codec, "coder", None)
    name = codec.name if coder is None else coder.codec_id
    if type(codec).__module__.partition(".")[0] != "tessarr" or name not in (
        _STEPS if coder is None else _STEPS | _FILTERS
    ):
        raise UnsupportedError(f"the codec {codec.name!r}")
    if coder is None:
        configuration = codec.to_json().get("configuration", {})
        members = dict(configuration) if isinstance(configuration, dict) else {}
    elif name in _FILTERS:
        return cast("tuple[JSONObject | None, np.dtype[Any]]", _lazy().v2_filter(coder, flow))
    else:
        members = dict(coder.members)
    if name == "blosc":
        typesize = members.get("typesize") or flow.itemsize
        members["typesize"] = typesize if isinstance(typesize, int) and typesize <= 255 else 1
    if isinstance(prefix := members.get("prefix"), str | bytes):
        members["prefix"] = list(prefix.encode("latin-1") if isinstance(prefix, str) else prefix)
    known = named("numcodecs.crc32c" if coder is not None and name == "crc32c" else name, members)
    return known, np.dtype(np.uint8)


def _swap(memory: np.dtype[Any], stored: np.dtype[Any], at: int = 0) -> list[JSON]:
    """What is reversed between two dtypes that differ in byte order only: ``[offset, unit, count]`` each."""
    if memory == stored:
        return []
    if memory.subdtype is not None and stored.subdtype is not None:
        base, shape = memory.subdtype
        width, count = base.itemsize, int(np.prod(shape))
        return [item for i in range(count) for item in _swap(base, stored.subdtype[0], at + i * width)]
    if memory.fields is not None and stored.fields is not None:
        found: list[JSON] = []
        for name, (field, offset, *_) in memory.fields.items():
            found += _swap(field, stored.fields[name][0], at + offset)
        return found
    parts = {"c": 2, "U": memory.itemsize // 4}.get(memory.kind, 1)
    if memory.kind not in "iufcmMU" or stored.kind != memory.kind:
        raise UnsupportedError(f"elements of {memory}, stored as {stored}")
    return [[at, memory.itemsize // parts, parts]]
