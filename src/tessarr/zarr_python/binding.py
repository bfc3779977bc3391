"""Bind arrays of zarr-python, or give the reason why zarr-python serves them.

Bindings are cached per metadata object of zarr-python while that object exists; zarr-python makes a new one whenever the shape
changes. The key of a binding is the metadata, the store and the runtime options.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from tessarr import registry
from tessarr.codecs.base import Codec
from tessarr.codecs.parse import NumcodecsCodec
from tessarr.codecs.sharding import ShardingCodec
from tessarr.engine.base import Engine
from tessarr.engine.bound import BoundArray, RuntimeOptions, bind
from tessarr.engine.choose import Choice, choose
from tessarr.errors import TessarrError
from tessarr.metadata.array import ArrayMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.zarr_python.originals import replaced, replaced_method
from tessarr.zarr_python.stores.unwrap import NotServedError, unwrap

if TYPE_CHECKING:
    from zarr.abc.store import Store as TheirStore
    from zarr.core.array_spec import ArrayConfig
    from zarr.core.metadata import ArrayMetadata as TheirMetadata
    from zarr.storage import StorePath
    from zarr.types import AnyArray, AnyAsyncArray

_PIPELINES = {
    "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarr.core.codec_pipeline.FusedCodecPipeline",
    "tessarr.zarr_python.pipeline.TessarrCodecPipeline",
}
_OURS = "tessarr.zarr_python."
_CODECS = ("zarr.codecs.", "numcodecs.", _OURS)
_MAX_DOCUMENT = 4096
"""Larger documents (of rectilinear grids) are not cached, in characters."""
_Order: TypeAlias = "tuple[str, tuple[_Order, ...]] | None"


class Binding(NamedTuple):
    """The bound array and engine that serve an array of zarr-python, or the reason why zarr-python serves it."""

    bound: BoundArray | None
    """``None``: zarr-python serves the array."""
    engine: Engine | None
    """The `Engine` that reads `bound`."""
    writer: tuple[BoundArray, Engine] | None
    """The bound array for writes, and its `Engine`. Where zarr-python keeps the values of shards beyond the array's edge, this
    array ends at the end of the shards, so that a selection up to the edge covers no shard."""
    order: Literal["C", "F"]
    """ "C" or "F": memory layout of the results of reads."""
    why: str
    """The engine with the reason for it, or the reason why zarr-python serves the array."""


class _CacheEntry(NamedTuple):
    config: object
    store: object
    root: object
    """The directory of a local store; ``move`` changes it."""
    attributes: int
    """The number of attributes of `store`; one more may replace a method."""
    path: str
    pipeline: type
    binding: Binding


_bindings: dict[int, tuple[weakref.ref[TheirMetadata], list[_CacheEntry]]] = {}
"""The bindings by `id` of the metadata object, with a reference to it. The objects are not hashable."""


def binding_of(array: AnyArray | AnyAsyncArray) -> Binding:
    """Return the binding of `array`, a ``zarr.Array`` or ``zarr.AsyncArray``."""
    theirs = cast("AnyAsyncArray", getattr(array, "async_array", array))
    return binding(theirs.metadata, theirs.config, theirs.store_path, theirs.codec_pipeline)


def binding(metadata: TheirMetadata, config: ArrayConfig, store_path: StorePath, pipeline: object) -> Binding:
    """Return the cached binding of an array with this metadata; a cache miss makes it."""
    store, path, kind = store_path.store, store_path.path, type(pipeline)
    root = getattr(store, "root", None)
    attributes = len(store.__dict__)
    entry = _bindings.get(id(metadata))
    if entry is not None:
        for known in entry[1]:
            same_place = known.store is store and known.root is root and known.path == path
            if same_place and known.attributes == attributes and known.pipeline is kind and known.config == config:
                return known.binding
    made = _make_binding(
        metadata, config, store, path, kind, keeps_padding=bool(getattr(pipeline, "supports_partial_encode", False))
    )
    key = id(metadata)
    if entry is None:
        entry = _bindings.setdefault(key, (weakref.ref(metadata, lambda _: _bindings.pop(key, None)), []))
    entry[1].append(_CacheEntry(config, store, root, attributes, path, kind, made))
    return made


def _make_binding(
    metadata: TheirMetadata, config: ArrayConfig, store: TheirStore, path: str, pipeline: type, *, keeps_padding: bool
) -> Binding:
    order = metadata.order if metadata.zarr_format == 2 else config.order
    try:
        if f"{pipeline.__module__}.{pipeline.__qualname__}" not in _PIPELINES:
            raise NotServedError(f"its codec pipeline is a {pipeline.__module__}.{pipeline.__qualname__}")
        bound, choice = bound_array(metadata, config, store, path)
        writer = (bound, choice.engine)
        shape = tuple(
            axis.start(axis.nchunks - 1) + axis.size(axis.nchunks - 1) if axis.nchunks else axis.length
            for axis in bound.axes
        )
        if keeps_padding and shape != bound.shape:
            whole = bind(bound.store, path, bound.metadata.with_(shape=shape), bound.options, bound.read_only)
            writer = (whole, choose(whole).engine)
    except NotServedError as reason:
        return Binding(None, None, None, order, str(reason))
    return Binding(bound, choice.engine, writer, order, f"the {choice.name} engine: {choice.reason}")


class Served(NamedTuple):
    """A bound array, and the engine chosen for it."""

    array: BoundArray
    choice: Choice


class _Document(NamedTuple):
    """The metadata of an array of zarr-python as JSON, with what else decides how it is bound."""

    zarr_format: Literal[2, 3]
    text: str
    """Without attributes, which may not be JSON."""
    orders: tuple[_Order, ...]
    """As in `_write_orders`."""
    changes: int
    """The number of changes of tessarr's settings."""


def bound_array(metadata: TheirMetadata, config: ArrayConfig, store: TheirStore, path: str) -> Served:
    """Bind the array with zarr-python's `metadata` at `path` of zarr-python's `store`.

    An array of a local directory that is opened again is bound once. Raises `NotServedError` where zarr-python might use other
    elements, codecs or another store.
    """
    if getattr(metadata, "_stored_document", None) is not None:
        raise NotServedError("its document is invalid, and zarr-python corrects it before the first write")
    codecs = _checked_codecs(metadata)
    where = unwrap(store)
    other = replaced([store, *codecs]) or replaced_method(store)
    if other is not None:
        raise NotServedError(f"{other} of zarr-python was replaced")
    empty, missing = bool(config.write_empty_chunks), bool(getattr(config, "read_missing_chunks", True))
    options = RuntimeOptions(empty, missing, replace_cut_chunks=True)
    try:
        document = _document(metadata)
        # Nothing is cached that rests on what other packages have registered.
        is_cached = len(document.text) <= _MAX_DOCUMENT and not registry.is_extended()
        # Two local stores of one directory are equal where both were made here, with the same options.
        is_local = isinstance(where, LocalStore) and not hasattr(store, "tessarr_store")
        at = (_bound_at if is_cached and is_local else _bound_at.__wrapped__)(where, path, document, options, is_cached)
    except (TessarrError, ValueError, TypeError, KeyError, ImportError) as error:
        raise NotServedError(f"tessarr cannot bind it: {error}") from error
    _check_elements(metadata, at.array)
    return at


@lru_cache(maxsize=128)
def _bound_at(where: Store, path: str, document: _Document, options: RuntimeOptions, is_cached: bool) -> Served:
    metadata = (_parsed if is_cached else _parsed.__wrapped__)(document)
    array = bind(where, path, metadata, options, "its store is read-only" if where.read_only else None)
    return Served(array, choose(array))


@lru_cache(maxsize=512)
def _parsed(document: _Document) -> ArrayMetadata:
    """Parse a document; arrays of equal documents share what is made of it (`BoundLayout`)."""
    from tessarr.metadata.formats import parse_node

    members = json.loads(document.text)
    if document.zarr_format == 3:
        parsed, _ = parse_node(3, {"zarr.json": members})
        assert isinstance(parsed, ArrayMetadata)
        return (
            parsed.with_(codecs=_with_write_order(parsed.codecs, document.orders)) if any(document.orders) else parsed
        )
    members.pop("attributes")
    parsed, _ = parse_node(2, {".zarray": members, ".zattrs": {}})
    assert isinstance(parsed, ArrayMetadata)
    return parsed


def _document(metadata: TheirMetadata) -> _Document:
    text = json.dumps(metadata.to_dict() | {"attributes": {}}, default=_to_json)
    orders = _write_orders(metadata.codecs) if metadata.zarr_format == 3 else ()
    return _Document(metadata.zarr_format, text, orders, settings.changes)


def _write_orders(codecs: Iterable[object]) -> tuple[_Order, ...]:
    """Return, for each of zarr-python's sharding codecs in `codecs`, its order of inner chunks, which documents do not state,
    with those of the codecs within it; for other codecs ``None``.
    """
    return tuple(
        # zarr-python 3.1 has no other order than "morton".
        (getattr(codec, "subchunk_write_order", "morton"), _write_orders(getattr(codec, "codecs", ())))
        if hasattr(codec, "index_codecs")
        else None
        for codec in codecs
    )


def _with_write_order(ours: tuple[Codec, ...], orders: Iterable[_Order]) -> tuple[Codec, ...]:
    """Give sharding codecs the order of inner chunks that zarr-python's have."""
    return tuple(
        replace(codec, codecs=_with_write_order(codec.codecs, order[1]), subchunk_write_order=order[0])
        if isinstance(codec, ShardingCodec) and order is not None
        else codec
        for codec, order in zip(ours, orders, strict=True)
    )


def _to_json(value: object) -> object:
    """Convert a value of zarr-python's metadata to JSON."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, NumcodecsCodec):
        return value.get_config()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _checked_codecs(metadata: TheirMetadata) -> list[object]:
    """Return all codecs, those within others too.

    Refuses codecs of classes that are not zarr-python's, numcodecs' or ours: their behaviour may differ from their names.
    """
    if metadata.zarr_format == 2:
        pending: list[object] = [
            *(metadata.filters or ()),
            *([] if metadata.compressor is None else [metadata.compressor]),
        ]
    else:
        pending = [*metadata.codecs]
    for codec in pending:
        module = type(codec).__module__ + "."
        if not module.startswith(_CODECS):
            raise NotServedError(f"its codec {module}{type(codec).__qualname__} is of another package")
        pending += [*getattr(codec, "codecs", ()), *getattr(codec, "index_codecs", ())]
    return pending


def _check_elements(metadata: TheirMetadata, bound: BoundArray) -> None:
    """Refuse arrays whose elements have another NumPy type or another fill value in zarr-python."""
    theirs = metadata.dtype if metadata.zarr_format == 2 else metadata.data_type
    dtype = theirs.to_native_dtype()
    if bound.metadata.data_type.lacks_unit:  # NumPy holds such types for equal whatever their byte order and multiple
        raise NotServedError("its elements are times without a unit")
    if dtype != bound.dtype:
        raise NotServedError(f"its elements are {dtype} in zarr-python and {bound.dtype} in tessarr")
    fill = theirs.default_scalar() if metadata.fill_value is None else metadata.fill_value
    if dtype.kind in "OT":
        same = fill == bound.fill[()]
    else:
        same = np.asarray(fill, dtype).tobytes() == bound.fill.tobytes()
    if not same:
        raise NotServedError(f"its fill value is {fill!r} in zarr-python and {bound.fill[()]!r} in tessarr")
