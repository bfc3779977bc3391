"""Describe a bound array to the Rust module, as JSON in the vocabulary of Zarr v3 (rust/src/array.rs)."""

from __future__ import annotations

import json
from math import prod
from types import ModuleType
from typing import cast

import numpy as np

from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import BytesToBytes
from tessarr.codecs.chain import BoundChain
from tessarr.dtypes.element import converted
from tessarr.engine.bound import BoundArray
from tessarr.engine.native.step import UnsupportedError, named
from tessarr.grids.base import Axis
from tessarr.keys.base import Slot
from tessarr.stores.base import Store
from tessarr.stores.functions import deletes_safely
from tessarr.stores.local.lock import NAME_BYTES
from tessarr.stores.protocols import PlainFiles, Remote
from tessarr.types import JSON, AnyDType, JSONObject

_LARGEST_CHUNK = 1 << 32
"""In bytes. Larger chunks are left to NumPy, whose memory is taken only where it is used."""


def describe(bound: BoundArray) -> str:
    """Make the description from which `tessarr._native.Array` is made. Raises `UnsupportedError`.

    What it says of the layout is spelled once for all arrays of the layout.
    """
    layout = bound.layout
    if layout.description is None:
        common = _layout(bound)
        key = json.dumps(common.pop("key"))
        layout.description = json.dumps(common)[1:-1], key[1:]
    members, key = layout.description
    prefix = f"{json.dumps(f'{bound.path}/')}, " if bound.path else ""
    place: JSONObject = {
        "store": _store(bound),
        "write_empty_chunks": bound.options.write_empty_chunks or not bound.access.deletes,
        "replace_cut_chunks": bound.options.replace_cut_chunks,
        "keep_updated_chunks": not deletes_safely(bound.store),
        "read_missing": bound.options.read_missing_chunks,
        "durable": bool(getattr(bound.store, "durable", False)),
    }
    return f'{{{members}, "key": [{prefix}{key}, {json.dumps(place)[1:]}'


def _layout(bound: BoundArray) -> JSONObject:
    """Describe what arrays of one layout have in common."""
    data_type = bound.metadata.data_type
    if data_type.may_be_missing:
        raise UnsupportedError("elements that may be missing")
    if data_type.itemsize is None or bound.dtype.hasobject:
        raise UnsupportedError(f"elements of the data type {data_type.name} differ in size")
    if prod(map(_longest, bound.axes)) * data_type.itemsize > _LARGEST_CHUNK:
        raise UnsupportedError("chunks of more than 4 GiB, which may not fit into memory")
    encoding = bound.metadata.chunk_key_encoding
    template = encoding.template(len(bound.axes)) if type(encoding).__module__.startswith("tessarr.keys.") else None
    if template is None:
        raise UnsupportedError(f"the chunk key encoding {encoding.name!r}")
    longest = encoding.encode(tuple(max(0, axis.nchunks - 1) for axis in bound.axes)).rpartition("/")[2]
    if len(longest) > NAME_BYTES:
        raise UnsupportedError("chunk names that are too long for the names of their lock files")
    shape = tuple(axis.size(0) if axis.nchunks else (axis.uniform or 1) for axis in bound.axes)
    return {
        "shape": list(bound.shape),
        "axes": [_axis(axis) for axis in bound.axes],
        "item": data_type.itemsize,
        "fill": list(converted(bound.fill, bound.dtype).tobytes()),
        "key": [_key_part(part) for part in template],
        "codecs": _chain(bound.chain(shape)),
    }


def _key_part(part: str | Slot) -> JSON:
    return part if isinstance(part, str) else {"axis": part.axis, "width": part.width, "group": part.group}


def _store(bound: BoundArray) -> JSONObject:
    store = bound.store
    if isinstance(store, PlainFiles):
        if not getattr(store, "file_locks", True):
            raise UnsupportedError("a local store without file locks")
        return {"kind": "local", "root": store.directory, "path": bound.path}
    if isinstance(store, Remote):
        from tessarr.stores.remote.base import NetworkStore  # imported here, because most programs do not need them
        from tessarr.stores.remote.coalesce import coalescing

        return {"kind": "python", "remote": True, "gap": coalescing().max_gap, "place": _place(store, NetworkStore)}
    from tessarr.stores.memory.store import MemoryStore

    return {"kind": "python", "place": _place(store, MemoryStore)}


def _place(store: Store, cached: type[Store]) -> str | None:
    """Return the part of cache keys that names the place, the same for all store objects over it; ``None``: no caching."""
    return store.url if isinstance(store, cached) else None


def _longest(axis: Axis) -> int:
    """Return the length of the longest chunk along `axis`."""
    return axis.uniform or max(map(axis.size, range(axis.nchunks)), default=1)


def _axis(axis: Axis) -> JSONObject:
    if axis.uniform is not None or not axis.nchunks:
        return {"size": axis.uniform or 1}
    last = axis.nchunks - 1
    return {"offsets": [*(axis.start(index) for index in range(axis.nchunks)), axis.start(last) + axis.size(last)]}


def _chain(chain: BoundChain) -> list[JSON]:
    codecs, filters = _leading_codecs(chain)
    middle, spec = chain.middle, chain.middle_spec
    if chain.shard is not None:
        layout = chain.shard
        if filters is not None:
            raise UnsupportedError("filters before the sharding codec")
        codecs.append(
            named(
                "sharding_indexed",
                {
                    "chunk_shape": list(layout.codec.chunk_shape),
                    "codecs": _chain(layout.inner),
                    "index_codecs": _chain(layout.index_chain),
                    "index_location": layout.codec.index_location,
                    "write_order": layout.codec.subchunk_write_order,
                },
            )
        )
    else:
        swap: list[JSON] = []
        extension: list[JSON] = []
        if isinstance(middle, BytesCodec):
            swap = _swap(spec.dtype, middle.stored_dtype(spec))
        elif type(middle).__module__ == _PACKBITS:
            filters = [*(filters or ()), _lazy().packing(middle, spec)]
        else:
            found = _extensions().serializer(middle, spec, _nested)
            if found.order is not None:
                if filters is not None:
                    raise UnsupportedError(f"filters before {middle.name}")
                codecs.append(named("transpose", {"order": found.order}))
            swap = _swap(spec.dtype, spec.dtype.newbyteorder(">")) if found.big else []
            extension = [found.step]
        if filters is not None and swap:
            filters, swap = [*filters, _lazy().swapping(swap, spec.dtype.itemsize)], []
        codecs.append(named("bytes", {"swap": swap, "boolean": chain.spec.dtype.kind == "b"}))
        codecs += [*(filters or ()), *extension]
    flow = middle.stored_dtype(spec) if isinstance(middle, BytesCodec) else np.dtype(np.uint8)
    for codec in chain.after:
        step, flow = _step(codec, flow)
        codecs += [] if step is None else [step]
    return codecs


def _leading_codecs(chain: BoundChain) -> tuple[list[JSON], list[JSON] | None]:
    """Describe the transpositions, and the filters as steps on bytes (``None`` when there are only transpositions)."""
    codecs: list[JSON] = []
    filters: list[JSON] | None = None
    moved = False
    for codec, spec in chain.before:
        order = codec.permutation(len(spec.shape))
        if order is not None:
            if moved and list(order) != sorted(order):
                raise UnsupportedError("a transposition after a codec that combines several elements")
            codecs += [] if moved else [named("transpose", {"order": list(order)})]
            continue
        step = _lazy().element_step(codec, spec)
        filters = [*(filters or ()), *([] if step is None else [step])]
        moved = moved or _lazy().moves(codec)
    return codecs, filters


def _nested(codec: BytesToBytes) -> JSONObject:
    """Describe a bytes → bytes codec within another codec."""
    step, _ = _step(codec, np.dtype(np.uint8))
    if step is None:
        raise UnsupportedError(f"the codec {codec.name!r} within another")
    return step


def _extensions() -> ModuleType:
    """Import `tessarr.engine.native.extensions`, which most arrays do not need."""
    from tessarr.engine.native import extensions

    return extensions


def _lazy() -> ModuleType:
    """Import `tessarr.engine.native.filters`, which most arrays do not need."""
    from tessarr.engine.native import filters as native_filters

    return native_filters


_STEPS = frozenset(
    (
        "blosc", "gzip", "zlib", "zstd", "lz4", "bz2", "shuffle",
        "crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3",
    )
)  # fmt: skip
_EXTENSIONS = frozenset(f"tessarr.codecs.bytes_to_bytes.{name}" for name in ("conditional", "lz4java", "lzw", "pad"))
_PACKBITS = "tessarr.codecs.array_to_bytes.packbits"
_FILTERS = frozenset(("delta", "quantize", "astype", "bitround", "packbits"))


def _step(codec: BytesToBytes, flow: AnyDType) -> tuple[JSONObject | None, AnyDType]:
    """Describe a bytes → bytes codec whose input are elements of `flow`. Returns the step, and the dtype of its output.

    The codec is one of the specification, or that of numcodecs of the same name, whose members are in `coder`.
    """
    if type(codec).__module__ in _EXTENSIONS:
        return cast("JSONObject | None", _extensions().step(codec, _nested)), np.dtype(np.uint8)
    coder = getattr(codec, "coder", None)
    name = codec.name if coder is None else coder.codec_id
    own = type(codec).__module__.partition(".")[0] == "tessarr" and not codec.is_foreign
    if not own or name not in (_STEPS if coder is None else _STEPS | _FILTERS):
        raise UnsupportedError(f"the codec {codec.name!r}")
    if coder is None:
        configuration = codec.to_json().get("configuration", {})
        members = dict(configuration) if isinstance(configuration, dict) else {}
    elif name in _FILTERS:
        return cast("tuple[JSONObject | None, AnyDType]", _lazy().v2_filter(coder, flow))
    else:
        members = dict(coder.members)
    if name == "blosc":
        typesize = members.get("typesize") or flow.itemsize
        members["typesize"] = typesize if isinstance(typesize, int) and typesize <= 255 else 1
    if isinstance(prefix := members.get("prefix"), str | bytes):
        members["prefix"] = list(prefix.encode("latin-1") if isinstance(prefix, str) else prefix)
    known = named("numcodecs.crc32c" if coder is not None and name == "crc32c" else name, members)
    return known, np.dtype(np.uint8)


def _swap(memory: AnyDType, stored: AnyDType, at: int = 0) -> list[JSON]:
    """List the byte swaps between two dtypes that differ in byte order only: ``[offset, unit, count]`` each."""
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
