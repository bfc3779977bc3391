"""Turn the arguments of `create_array` into array metadata: defaults, automatic choices, one normal form per argument."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tessarr import registry
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.fit import fit_chain
from tessarr.codecs.parse import CodecLike, CodecsLike, codec_from, named_config
from tessarr.codecs.sharding import ShardingCodec
from tessarr.common import strict_json
from tessarr.common.warn import Diagnostic, report, warn, warn_as_zarr_python, warnings_issued
from tessarr.core.creation.array_config import DEFAULT
from tessarr.core.creation.zarr_python_arguments import check_v2_compressor, check_v2_unit, default_fill
from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.parse import DTypeLike, from_numpy, from_v2
from tessarr.errors import BaseZarrError, MetadataValidationError, Problem, ZarrUserWarning
from tessarr.grids.base import ChunkGrid
from tessarr.grids.guess import (
    ChunksLike,
    ShardsLike,
    check_shards,
    guess_chunks_by_halving,
    guess_shards,
    guess_shards_by_count,
    normalize_chunks,
)
from tessarr.grids.regular import RegularGrid
from tessarr.keys.base import ChunkKeyEncoding, ChunkKeyEncodingLike
from tessarr.metadata.array import DIMENSIONS, ArrayMetadata
from tessarr.metadata.v3 import check_endian, new_transformers
from tessarr.settings import config as settings
from tessarr.types import JSONObject, Shape, ShapeLike, ZarrFormat


def array_like(data: object) -> Any:
    """Return `data` if it has a shape and a dtype (it is then read box by box), otherwise convert it to a NumPy array."""
    return data if hasattr(data, "dtype") and hasattr(data, "shape") else np.asarray(data)


def new_array_metadata(
    *,
    shape: ShapeLike,
    dtype: DTypeLike,
    zarr_format: ZarrFormat = 3,
    chunks: ChunksLike = "auto",
    shards: ShardsLike = None,
    filters: CodecsLike = "auto",
    compressors: CodecsLike = "auto",
    serializer: CodecLike | None = "auto",
    codecs: Iterable[CodecLike] | None = None,
    fill_value: object = DEFAULT,
    order: str | None = None,
    attributes: Mapping[str, object] | None = None,
    chunk_key_encoding: ChunkKeyEncodingLike | None = None,
    dimension_names: Iterable[str | None] | None = None,
    object_codec: CodecLike | None = None,
    storage_transformers: Sequence[JSONObject] = (),
) -> ArrayMetadata:
    """Make the metadata of a new array. Arguments and errors are those of `tessarr.create_array`."""
    given = (shape, chunks, shards, filters, compressors, serializer, codecs, chunk_key_encoding, dimension_names)
    rest = (zarr_format, order, object_codec, storage_transformers, None if fill_value is DEFAULT else [fill_value])
    key = _key(isinstance(dtype, np.dtype), _plain(dtype), given, rest)
    if key is not None and (known := _known.get(key)) is not None:
        return known.with_attributes(strict_json.plain(dict(attributes or {})))
    issued = warnings_issued()
    lengths = _shape(shape)
    data_type, filters = _data_type(dtype, object_codec, filters, zarr_format)
    endian = _byteorder(dtype) if zarr_format == 3 else None
    itemsize = data_type.itemsize or 16
    common: dict[str, Any] = {
        "zarr_format": zarr_format,
        "shape": lengths,
        "data_type": data_type,
        "fill_value": fill_from(data_type, fill_value, zarr_format),
        "attributes": strict_json.plain(dict(attributes or {})),
        "dimension_names": _dimension_names(dimension_names, len(lengths)),
    }
    if zarr_format == 3:
        grid, inner = _grids(lengths, chunks, shards, itemsize)
        chain = (
            tuple(codec_from(codec) for codec in codecs)
            if codecs is not None
            else _chain(data_type, filters, serializer, compressors, endian)
        )
        _report_diagnostics(chain)
        if inner is not None:
            chain = (ShardingCodec(inner, chain, **_shard_options(shards)),)
        chain = _fitted(chain, ChunkSpec(_first_chunk(grid, lengths), data_type, common["fill_value"]))
        made = ArrayMetadata(
            **common,
            chunk_grid=grid,
            chunk_key_encoding=_key_encoding(chunk_key_encoding, "default", len(lengths)),
            codecs=chain,
            storage_transformers=new_transformers(storage_transformers),
        )
        return _remembered(made, key, issued)
    return _older_metadata(
        common, chunks, shards, filters, compressors, codecs, order, chunk_key_encoding, itemsize, storage_transformers
    )


_known: dict[tuple[int, bytes], ArrayMetadata] = {}
"""Arguments → v3 metadata without attributes, of whose objects equal arguments make metadata again, as the parse cache does."""
_MAX_KNOWN = 512
"""The cache is emptied when it would exceed this size."""
_MAX_KEY_NBYTES = 4096
"""Long arguments (of rectilinear grids) are not kept."""
_PLAIN = frozenset((str, int, bool, float, type(None)))


def _key(*arguments: object) -> tuple[int, bytes] | None:
    """Make a key of arguments that are JSON, with the settings as they are; ``None``: of others, or of what may change."""
    if registry.is_extended() or not _is_plain(arguments):
        return None
    # Integers, booleans and floats that are equal give different bytes; version 2 writes no back-references.
    key = marshal.dumps(arguments, 2)  # type: ignore[arg-type]  # `_is_plain`
    return (settings.changes, key) if len(key) <= _MAX_KEY_NBYTES else None


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind is tuple or kind is list:
        return all(map(_is_plain, value))  # type: ignore[call-overload]
    return kind is dict and all(map(_is_plain, value.items()))  # type: ignore[attr-defined]


def _plain(dtype: DTypeLike) -> object:
    """Return what tells a dtype of NumPy's own numbers from all others, as JSON; others as they are."""
    if isinstance(dtype, np.dtype) and dtype.isbuiltin == 1 and dtype.kind in "biufc" and dtype.metadata is None:
        return [dtype.char]
    return dtype


def _remembered(made: ArrayMetadata, key: tuple[int, bytes] | None, issued: int) -> ArrayMetadata:
    """Return `made`, and keep it for equal arguments, unless making it caused a warning since `issued` were counted."""
    is_lasting = not made.storage_transformers and not any(codec.is_foreign for codec in made.codecs)
    if key is not None and is_lasting and issued == warnings_issued():
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[key] = made.with_attributes({})
    return made


def _data_type(
    dtype: DTypeLike, object_codec: CodecLike | None, filters: CodecsLike, zarr_format: int
) -> tuple[DataType, Any]:
    """Resolve the data type and the filters; in v1 and v2 an object codec becomes the first filter."""
    if hasattr(dtype, "to_native_dtype") and not isinstance(dtype, DataType):
        dtype = dtype.to_json(zarr_format=3)  # type: ignore[union-attr] # a data type of zarr-python
    if zarr_format == 3:
        return from_numpy(dtype).with_byteorder("="), filters
    codec_id, filters = _object_codec(object_codec, filters)
    if codec_id is not None and from_numpy_dtype(dtype) == np.dtype(object):
        return from_v2("|O", [_v2_config(f) for f in _listed(filters)]), filters
    dtype = object if _is_text_for(codec_id, dtype) else dtype
    return from_numpy(dtype, object_codec=codec_id), filters


def _report_diagnostics(chain: tuple[Codec, ...]) -> None:
    """Warn of codecs that were given as JSON of an earlier draft."""
    report(Diagnostic(message) for codec in chain for message in codec.diagnostics)


def _fitted(chain: tuple[Codec, ...], spec: ChunkSpec) -> tuple[Codec, ...]:
    """Fit a chain to such chunks. Raises for one that cannot encode them or states no byte order.

    Warns of codecs that prevent partial reads of shards.
    """
    chain = fit_chain(chain, spec)
    bound = BoundChain(chain, spec)
    check_endian(bound, strict=True)
    if bound.shard is not None and not bound.partial:
        message = (
            "Combining a `sharding_indexed` codec disables partial reads and writes, which may lead to inefficient "
            "performance, where a filter or compressor is around it; give them to the inner chunks"
        )
        warn(message, ZarrUserWarning)
    return chain


def _older_metadata(
    common: dict[str, Any],
    chunks: ChunksLike,
    shards: ShardsLike,
    filters: CodecsLike,
    compressors: CodecsLike,
    codecs: Iterable[CodecLike] | None,
    order: str | None,
    chunk_key_encoding: ChunkKeyEncodingLike | None,
    itemsize: int,
    transformers: object,
) -> ArrayMetadata:
    """Make metadata of v1 or v2, which have filters, one compressor, and an order."""
    from tessarr.metadata.v2 import chain_from_v2

    zarr_format, data_type = common["zarr_format"], common["data_type"]
    if data_type.may_be_missing:
        data_type.to_v2()  # raises
    if shards is not None:
        message = f"Zarr format {zarr_format} arrays can only be created with `shard_shape` set to `None`."
        raise BaseZarrError(f"{message} Got `shard_shape={shards}` instead.", hint="Use zarr_format=3 for shards")
    if codecs is not None or transformers:
        raise BaseZarrError(f"Zarr v{zarr_format} has no codecs or storage transformers; use zarr_format=3")
    if common["dimension_names"] and zarr_format == 2:
        common["attributes"].setdefault(DIMENSIONS, list(common["dimension_names"]))
    check_v2_unit(data_type)
    grid, _ = _grids(common["shape"], chunks, None, itemsize)
    if grid.chunk_shape is None:
        raise BaseZarrError(f"Zarr format {zarr_format} has no rectilinear chunks; use zarr_format=3")
    filter_configs = _v2_filters(filters, data_type)
    compressor = _v2_compressor(compressors, zarr_format)
    encoding = _key_encoding(chunk_key_encoding, "v2", len(common["shape"]))
    if encoding.name != "v2":
        raise BaseZarrError(f"Zarr v{zarr_format} has only the v2 chunk key encoding", got=encoding.name)
    layout = order or "C"
    if layout not in ("C", "F"):
        raise BaseZarrError("invalid order", expected="'C' or 'F'", got=repr(order))
    return ArrayMetadata(
        **common,
        chunk_grid=grid,
        chunk_key_encoding=encoding,
        codecs=chain_from_v2(layout, compressor, filter_configs, data_type, len(common["shape"])),
        order=layout,
        compressor=compressor,
        filters=filter_configs,
    )


def _shape(shape: ShapeLike) -> Shape:
    items = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    for n in items:
        if isinstance(n, float):
            raise TypeError(f"Expected an iterable of integers as shape, got {shape!r}")
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:  # type: ignore[redundant-expr] # unchecked
            raise BaseZarrError("invalid shape", expected="non-negative integers", got=repr(shape))
    return tuple(map(int, items))


def _first_chunk(grid: ChunkGrid, shape: Shape) -> Shape:
    return grid.chunk_shape or tuple(axis.size(0) if axis.nchunks else 1 for axis in grid.axes(shape))


def _grids(shape: Shape, chunks: ChunksLike, shards: Any, itemsize: int) -> tuple[ChunkGrid, Shape | None]:
    """Resolve the chunk grid, and with shards the inner chunk shape."""
    sharded = shards is not None and shards is not False
    if isinstance(chunks, str) and chunks == "auto" and settings.get("zarr_python.auto_chunks"):
        chunks = guess_chunks_by_halving(shape, itemsize, **({"max_nbytes": 1 << 20} if sharded else {}))
    grid = chunks if isinstance(chunks, ChunkGrid) else normalize_chunks(chunks, shape, itemsize)
    if not sharded:
        return grid, None
    if grid.chunk_shape is None:
        raise BaseZarrError("Rectilinear chunks with sharding: inner chunks must all have one shape", got=repr(chunks))
    inner = grid.chunk_shape
    if isinstance(shards, Mapping):
        if "shape" not in shards:
            raise BaseZarrError("shards without a shape", expected="a mapping with 'shape'", got=repr(shards))
        shards = shards["shape"]
    if isinstance(shards, str) or shards is True:
        return RegularGrid(_automatic_shards(shape, inner, itemsize)), inner
    outer = shards if isinstance(shards, ChunkGrid) else normalize_chunks(shards, shape, itemsize, units=inner)
    return check_shards(outer, inner), inner


def _automatic_shards(shape: Shape, inner: Shape, itemsize: int) -> Shape:
    warn_as_zarr_python(
        "Automatic shard shape inference is experimental and may change without notice.", module="zarr.core.array"
    )
    target = settings.get("array.target_shard_size_bytes", None)
    if settings.get("zarr_python.auto_chunks"):
        return guess_shards_by_count(shape, inner, itemsize, target_nbytes=target)
    return guess_shards(shape, inner, itemsize, **({"target_nbytes": target} if target else {}))


def _shard_options(shards: ShardsLike) -> dict[str, Any]:
    if not isinstance(shards, Mapping):
        return {}
    unknown = shards.keys() - {"shape", "index_location", "index_codecs", "subchunk_write_order"}
    if unknown:
        raise TypeError(f"unknown shard options {sorted(unknown)}")
    return {name: value for name, value in shards.items() if name != "shape"}


def _byteorder(dtype: DTypeLike) -> str | None:
    """Return the byte order of a dtype given with one: a v3 array stores elements in that order."""
    if settings.get("zarr_python.little_endian"):
        return None  # little-endian then
    order = getattr(from_numpy_dtype(dtype), "byteorder", "=")
    return {">": "big", "<": "little"}.get(order)


def from_numpy_dtype(dtype: DTypeLike) -> object:
    """Convert `dtype` to a NumPy dtype, or return ``None`` where NumPy has none."""
    if isinstance(dtype, DataType):
        return dtype.dtype
    try:
        return np.dtype(dtype)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _chain(
    data_type: DataType, filters: CodecsLike, serializer: CodecLike | None, compressors: CodecsLike, endian: str | None
) -> tuple[Codec, ...]:
    before = [codec_from(f) for f in ([] if filters in ("auto", None) else _listed(filters))]
    misplaced = [c for c in before if not isinstance(c, ArrayToArray)]
    if misplaced and len(misplaced) == 1 and isinstance(misplaced[0], ArrayToBytes) and serializer in ("auto", None):
        before.remove(misplaced[0])  # as in zarr-python 2: a vlen codec given as a filter
        serializer = misplaced[0]
    if serializer in ("auto", None):
        serializer = default_serializer(data_type, endian)
    if isinstance(compressors, str) and compressors == "auto":
        after: list[Codec] = [_default_compressor()]
    else:
        after = [codec_from(c) for c in ([] if compressors is None else _listed(compressors))]
    wrong = [c for c in before if not isinstance(c, ArrayToArray)] + [
        c for c in after if not isinstance(c, BytesToBytes)
    ]
    if wrong:
        raise BaseZarrError(
            f"{wrong[0].name} is a codec of kind {wrong[0].kind}",
            codec=wrong[0].name,
            expected="filters are array_to_array, the serializer array_to_bytes, compressors bytes_to_bytes",
        )
    return (*before, codec_from(serializer), *after)


@cache
def _default_compressor() -> Codec:
    from tessarr.codecs.bytes_to_bytes.zstd import ZstdCodec

    return ZstdCodec()


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def default_serializer(data_type: DataType, endian: str | None = None) -> Codec:
    """Choose the array → bytes codec for a data type, when the user gives none."""
    if data_type.itemsize is not None:
        return BytesCodec((endian or "little") if data_type.has_byteorder else None)  # type: ignore[arg-type]
    if data_type.may_be_missing:
        from tessarr.codecs.array_to_bytes.optional import default_optional

        return default_optional(data_type, lambda inner: default_serializer(inner, endian))
    from tessarr.codecs.array_to_bytes.vlen import VLenBytesCodec, VLenUTF8Codec

    if data_type.name in ("string", "json"):
        return VLenUTF8Codec()
    if data_type.dtype.kind == "O" and data_type.object_codec in (None, "vlen-bytes"):
        return VLenBytesCodec()
    raise BaseZarrError(
        f"Zarr v3 cannot store {data_type.name}",
        hint="Use a serializer for this data type, or zarr_format=2 with an object codec",
    )


def fill_from(data_type: DataType, value: object, zarr_format: int) -> Scalar | None:
    """Convert a fill value given by a user to a scalar of `data_type`."""
    if value is DEFAULT or (value is None and zarr_format == 3):
        return default_fill(data_type)
    if value is None:
        return None
    try:
        return data_type.cast_given_fill(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BaseZarrError(
            "the fill value is not a value of the data type", expected=data_type.name, got=repr(value), hint=str(error)
        ) from error


def _dimension_names(names: Iterable[str | None] | None, ndim: int) -> tuple[str | None, ...] | None:
    if names is None:
        return None
    given = tuple(names)
    if not given:
        return None
    if len(given) != ndim or not all(name is None or isinstance(name, str) for name in given):
        raise BaseZarrError("invalid dimension names", expected=f"{ndim} strings or None", got=given)
    named = [name for name in given if name is not None]
    if len(set(named)) < len(named):
        warn(f"dimension names should be distinct, got {given}", ZarrUserWarning)
    return given


def _key_encoding(given: object, default: str, ndim: int) -> ChunkKeyEncoding:
    """Resolve the chunk key encoding `given`, for arrays of `ndim` axes. Raises `MetadataValidationError`."""
    encoding = _parse_key_encoding(given, default)
    encoding.template(ndim)
    return encoding


def _parse_key_encoding(given: object, default: str) -> ChunkKeyEncoding:
    if isinstance(given, ChunkKeyEncoding):
        return given
    to_dict = getattr(given, "to_dict", None)
    if to_dict is not None:  # an object of zarr-python
        given = to_dict()
    if isinstance(given, tuple) and len(given) == 2:  # zarr-python's older spelling: name and separator
        given = {"name": given[0], "separator": given[1]}
    if given in (".", "/"):
        given = {"name": default, "separator": given}
    if isinstance(given, Mapping) and "separator" in given and "configuration" not in given:
        given = {"name": given.get("name", default), "configuration": {"separator": given["separator"]}}
    problems: list[Problem] = []
    parsed = named_config(default if given is None else given, ("chunk_key_encoding",), problems)
    implementation = registry.get("chunk_key_encoding", parsed[0]) if parsed else None
    if implementation is None or parsed is None:
        raise MetadataValidationError(f"invalid chunk_key_encoding {given!r}", problems)
    return implementation.from_json(parsed[1])  # type: ignore[no-any-return]


def _object_codec(object_codec: CodecLike | None, filters: CodecsLike) -> tuple[str | None, Any]:
    """Return the id of the v2 object codec, and the filters with that codec in front."""
    from tessarr.codecs.numcodecs.table import OBJECT_CODECS

    if object_codec is None:
        ids = [_v2_config(f).get("id") for f in ([] if filters in ("auto", None) else _listed(filters))]
        return next((i for i in ids if i in (*OBJECT_CODECS, "pickle")), None), filters
    config = _v2_config(object_codec)
    rest = [] if filters in ("auto", None) else _listed(filters)
    return str(config["id"]), [config, *rest]


def _is_text_for(object_codec: str | None, dtype: DTypeLike) -> bool:
    """Whether a string or bytes dtype of fixed length is combined with the vlen filter: xarray passes such pairs.

    The array then holds strings of any length; no other implementation reads it with the fixed dtype in its document.
    """
    kind = {"vlen-utf8": "U", "vlen-bytes": "S"}.get(object_codec or "")
    try:
        return kind is not None and isinstance(dtype, np.dtype | str) and np.dtype(dtype).kind == kind
    except TypeError:  # a name that NumPy does not have
        return False


def _v2_config(codec: object) -> JSONObject:
    """Convert a v1 or v2 filter or compressor, as a user passes it, to its numcodecs configuration."""
    from tessarr.codecs.numcodecs import v2_config
    from tessarr.codecs.numcodecs.v2 import config_of_v3

    if isinstance(codec, str):  # "zlib", or with the element type of ragged rows "vlen-array:<i4"
        name, _, argument = codec.partition(":")
        codec = {"id": name, "dtype": argument} if argument else {"id": name}
    if isinstance(codec, Mapping) and "name" in codec and "id" not in codec:
        codec = codec_from(codec)
    if isinstance(codec, Codec) and not hasattr(codec, "to_v2"):
        config = config_of_v3(codec)
        if config is None:
            raise BaseZarrError(f"Zarr v2 has no codec {codec.name}", codec=codec.name, hint="Use zarr_format=3")
        return config
    return dict(v2_config(codec))


def _v2_filters(filters: CodecsLike, data_type: DataType) -> tuple[JSONObject, ...] | None:
    given = [] if filters in ("auto", None) else _listed(filters)
    configs = [_v2_config(f) for f in given]
    needed = data_type.object_codec
    if needed and not any(config["id"] == needed for config in configs):
        rows = getattr(data_type, "data_type", None)  # the element type of ragged arrays
        configs.insert(0, _v2_config(needed if rows is None else f"{needed}:{rows.to_v2()}"))
    return tuple(configs) or None


def _v2_compressor(compressors: CodecsLike, zarr_format: int) -> JSONObject | None:
    if isinstance(compressors, str) and compressors in ("auto", "default"):
        return (
            {"id": "zstd", "level": 0}
            if zarr_format == 2
            else {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}
        )
    given = [c for c in _listed(compressors) if c is not None]
    if len(given) > 1:
        raise BaseZarrError(
            f"Zarr v{zarr_format} has one compressor", got=f"{len(given)} compressors", hint="Use zarr_format=3"
        )
    check_v2_compressor(given)
    return _v2_config(given[0]) if given else None
