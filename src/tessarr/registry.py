"""Resolve names to classes, for the five extension points of Zarr v3 and for numcodecs ids, and URL schemes to stores.

Each point has one explicit, lazy table: a built-in name maps to ``"module:Class"`` and is imported on first use. Third
parties add names with `register`, or by an entry point in the group ``tessarr.<point>``. Codecs that other packages offer to
zarr-python, in its group ``zarr.codecs``, are read too, and adapted when they are needed (`tessarr.codecs.zarr_python`).
Built-in and registered names have precedence over entry points, and tessarr's groups over zarr-python's. zarr-python's group
``zarr.data_type`` is not read.

>>> get("codec", "gzip").__name__
'GzipCodec'
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from tessarr.errors import BaseZarrError

Point: TypeAlias = Literal["data_type", "chunk_grid", "chunk_key_encoding", "codec", "storage_transformer", "store_url"]

_A2A = "tessarr.codecs.array_to_array."
_A2B = "tessarr.codecs.array_to_bytes."
_B2B = "tessarr.codecs.bytes_to_bytes."
_N = "tessarr.codecs.numcodecs.v3:"
_D = "tessarr.dtypes."
_O = "tessarr.stores.remote.obstore.open:open_url"
_TABLE: dict[str, dict[str, Any]] = {
    "data_type": {
        "bool": _D + "numeric:Bool",
        "int8": _D + "numeric:Int8",
        "int16": _D + "numeric:Int16",
        "int32": _D + "numeric:Int32",
        "int64": _D + "numeric:Int64",
        "uint8": _D + "numeric:UInt8",
        "uint16": _D + "numeric:UInt16",
        "uint32": _D + "numeric:UInt32",
        "uint64": _D + "numeric:UInt64",
        "float16": _D + "numeric:Float16",
        "float32": _D + "numeric:Float32",
        "float64": _D + "numeric:Float64",
        "complex64": _D + "numeric:Complex64",
        "complex128": _D + "numeric:Complex128",
        "complex_float32": _D + "numeric:Complex64",
        "complex_float64": _D + "numeric:Complex128",
        "int2": _D + "small:Int2",
        "int4": _D + "small:Int4",
        "uint2": _D + "small:UInt2",
        "uint4": _D + "small:UInt4",
        "bfloat16": _D + "small:BFloat16",
        "float8_e3m4": _D + "small:Float8E3M4",
        "float8_e4m3": _D + "small:Float8E4M3",
        "float8_e5m2": _D + "small:Float8E5M2",
        "float8_e4m3fn": _D + "small:Float8E4M3FN",
        "float8_e4m3b11fnuz": _D + "small:Float8E4M3B11FNUZ",
        "float8_e4m3fnuz": _D + "small:Float8E4M3FNUZ",
        "float8_e5m2fnuz": _D + "small:Float8E5M2FNUZ",
        "float8_e8m0fnu": _D + "small:Float8E8M0FNU",
        "float6_e2m3fn": _D + "small:Float6E2M3FN",
        "float6_e3m2fn": _D + "small:Float6E3M2FN",
        "float4_e2m1fn": _D + "small:Float4E2M1FN",
        "complex_float16": _D + "small:ComplexFloat16",
        "complex_bfloat16": _D + "small:ComplexBFloat16",
        "complex_float8_e3m4": _D + "small:ComplexFloat8E3M4",
        "complex_float8_e4m3": _D + "small:ComplexFloat8E4M3",
        "complex_float8_e5m2": _D + "small:ComplexFloat8E5M2",
        "complex_float8_e4m3b11fnuz": _D + "small:ComplexFloat8E4M3B11FNUZ",
        "complex_float8_e4m3fnuz": _D + "small:ComplexFloat8E4M3FNUZ",
        "complex_float8_e5m2fnuz": _D + "small:ComplexFloat8E5M2FNUZ",
        "complex_float8_e8m0fnu": _D + "small:ComplexFloat8E8M0FNU",
        "complex_float6_e2m3fn": _D + "small:ComplexFloat6E2M3FN",
        "complex_float6_e3m2fn": _D + "small:ComplexFloat6E3M2FN",
        "complex_float4_e2m1fn": _D + "small:ComplexFloat4E2M1FN",
        "raw_bytes": _D + "raw:RawBytes",
        "null_terminated_bytes": _D + "raw:NullTerminatedBytes",
        "fixed_length_utf32": _D + "raw:FixedLengthUTF32",
        "numpy.datetime64": _D + "time:DateTime64",
        "numpy.timedelta64": _D + "time:TimeDelta64",
        "struct": _D + "struct:Struct",
        "structured": _D + "struct:Struct",
        "string": _D + "variable:VariableLengthUTF8",
        "json": _D + "json:JSONValue",
        "bytes": _D + "variable:VariableLengthBytes",
        "variable_length_bytes": _D + "variable:VariableLengthBytes",
    },
    "chunk_grid": {
        "regular": "tessarr.grids.regular:RegularGrid",
        "rectilinear": "tessarr.grids.rectilinear:RectilinearGrid",
    },
    "chunk_key_encoding": {
        "default": "tessarr.keys.default:DefaultKeyEncoding",
        "v2": "tessarr.keys.v2:V2KeyEncoding",
        "fanout": "tessarr.keys.fanout:FanoutKeyEncoding",
        "template": "tessarr.keys.template:TemplateKeyEncoding",
        "prefix": "tessarr.keys.affix:PrefixKeyEncoding",
        "suffix": "tessarr.keys.affix:SuffixKeyEncoding",
        "zarrs.default_suffix": "tessarr.keys.affix:DefaultSuffixKeyEncoding",
    },
    "codec": {
        "bytes": _A2B + "bytes:BytesCodec",
        "endian": _A2B + "bytes:BytesCodec",
        "transpose": _A2A + "transpose:TransposeCodec",
        "blosc": _B2B + "blosc:BloscCodec",
        "gzip": _B2B + "gzip:GzipCodec",
        "zstd": _B2B + "zstd:ZstdCodec",
        "crc32c": _B2B + "crc32c:Crc32cCodec",
        "sharding_indexed": "tessarr.codecs.sharding:ShardingCodec",
        "vlen-utf8": _A2B + "vlen:VLenUTF8Codec",
        "vlen-bytes": _A2B + "vlen:VLenBytesCodec",
        "packbits": _A2B + "packbits:PackBitsCodec",
        "bitround": _A2A + "bitround:BitRoundCodec",
        "scale_offset": _A2A + "scale_offset:ScaleOffsetCodec",
        "cast_value": _A2A + "cast_value:CastValueCodec",
        "reshape": _A2A + "reshape:ReshapeCodec",
        "singleton_dim": _A2A + "singleton_dim:SingletonDimCodec",
        "zfp": _A2B + "zfp:ZfpCodec",
        "n5_default": _A2B + "n5_default:N5DefaultCodec",
        "n5_varlen": _A2B + "n5_varlen:N5VarlenCodec",
        "jpeg": _A2B + "jpeg:JpegCodec",
        "conditional": _B2B + "conditional:ConditionalCodec",
        "pad": _B2B + "pad:PadCodec",
        "lzw": _B2B + "lzw:LzwCodec",
        "tessarr.lz4java": _B2B + "lz4java:Lz4JavaCodec",
        "zarrs.squeeze": _A2A + "singleton_dim:SqueezeCodec",
        "zarrs.bitround": _A2A + "bitround:BitRoundCodec",
        "https://codec.zarrs.dev/array_to_bytes/bitround": _A2A + "bitround:BitRoundCodec",
        "https://codec.zarrs.dev/array_to_array/bitround": _A2A + "bitround:BitRoundCodec",
        "https://codec.zarrs.dev/array_to_array/squeeze": _A2A + "singleton_dim:SqueezeCodec",
        "https://codec.zarrs.dev/array_to_bytes/vlen_utf8": _A2B + "vlen:VLenUTF8Codec",
        "https://codec.zarrs.dev/array_to_bytes/vlen_bytes": _A2B + "vlen:VLenBytesCodec",
        "https://codec.zarrs.dev/bytes_to_bytes/shuffle": _N + "Shuffle",
        "https://codec.zarrs.dev/bytes_to_bytes/zlib": _N + "Zlib",
        "zarrs.zfp": _A2B + "zfp:ZfpCodec",
        "https://codec.zarrs.dev/array_to_bytes/zfp": _A2B + "zfp:ZfpCodec",
        "https://codec.zarrs.dev/array_to_bytes/zfpy": _N + "ZFPY",
        "https://codec.zarrs.dev/array_to_bytes/pcodec": _N + "PCodec",
        "https://codec.zarrs.dev/bytes_to_bytes/fletcher32": _N + "Fletcher32",
        "https://codec.zarrs.dev/bytes_to_bytes/bz2": _N + "BZ2",
        "imagecodecs_zlib": _N + "ImagecodecsZlib",
        "imagecodecs_deflate": _N + "ImagecodecsDeflate",
        "imagecodecs_zstd": _N + "ImagecodecsZstd",
        "imagecodecs_bz2": _N + "ImagecodecsBZ2",
        "imagecodecs_lzma": _N + "ImagecodecsLZMA",
        "imagecodecs_lz4": _N + "ImagecodecsLZ4",
        "imagecodecs_blosc": _N + "ImagecodecsBlosc",
        "imagecodecs_lzw": _N + "ImagecodecsLZW",
        "numcodecs.blosc": _N + "Blosc",
        "numcodecs.lz4": _N + "LZ4",
        "numcodecs.zstd": _N + "Zstd",
        "numcodecs.zlib": _N + "Zlib",
        "numcodecs.gzip": _N + "GZip",
        "numcodecs.bz2": _N + "BZ2",
        "numcodecs.lzma": _N + "LZMA",
        "numcodecs.shuffle": _N + "Shuffle",
        "numcodecs.base64": _N + "Base64",
        "numcodecs.crc32": _N + "CRC32",
        "numcodecs.crc32c": _N + "CRC32C",
        "numcodecs.adler32": _N + "Adler32",
        "numcodecs.fletcher32": _N + "Fletcher32",
        "numcodecs.jenkins_lookup3": _N + "JenkinsLookup3",
        "numcodecs.delta": _N + "Delta",
        "numcodecs.fixedscaleoffset": _N + "FixedScaleOffset",
        "numcodecs.quantize": _N + "Quantize",
        "numcodecs.bitround": _N + "BitRound",
        "numcodecs.astype": _N + "AsType",
        "numcodecs.packbits": _N + "PackBits",
        "numcodecs.pcodec": _N + "PCodec",
        "numcodecs.zfpy": _N + "ZFPY",
        "numcodecs.pickle": _N + "Pickle",
    },
    "storage_transformer": {},
    "store_url": {
        **dict.fromkeys(("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "http", "https"), _O),
        "redis": "tessarr.stores.database.redis:open_url",
        "rediss": "tessarr.stores.database.redis:open_url",
        "sqlite": "tessarr.stores.database.sqlite:open_url",
        "lmdb": "tessarr.stores.database.lmdb:open_url",
        "reference": "tessarr.stores.virtual.reference:open_url",
        "pipeline": "tessarr.stores.virtual.pipeline:open_url",
        "mapping": "tessarr.stores.memory.process_urls:open_url",
        "object": "tessarr.stores.memory.process_urls:open_url",
        "fsspec": "tessarr.stores.remote.fsspec:open_url",
    },
}
_entry_points_read: set[str] = set()
_extended: set[str] = set()
"""The points with third-party registrations that decide how documents are read."""
_imported: dict[object, Any] = {}
"""What the table has → class. Not stored in the table, where another thread may have registered another class."""


class _ForZarrPython(NamedTuple):
    """A codec in the group ``zarr.codecs``: its class is imported and adapted when the codec is needed."""

    name: str
    value: str
    package: str


_NAME = re.compile(r"[a-z][a-z0-9-_.]+", re.ASCII)
_URI = re.compile(r"(?:https?://|urn:)[\x21-\x7e]+")


def is_extension_name(name: str) -> bool:
    """Return whether `name` is allowed for a new extension. Source: Zarr v3.1 core, "Extension naming".

    >>> [is_extension_name(name) for name in ("zstd", "numcodecs.adler32", "https://example.org/x", "foo/bar", "Zstd", "a")]
    [True, True, True, False, False, False]
    """
    return bool(_NAME.fullmatch(name) or _URI.fullmatch(name))


def register(point: Point, name: str, implementation: object) -> None:
    """Register `implementation` (a class, or ``"module:Class"``) under `name` at `point`; replaces an earlier one.

    Raises `BaseZarrError` (a `ValueError`) for a name that neither has the specification's form nor is a URI.
    """
    if not is_extension_name(name):
        raise BaseZarrError(
            f"{name!r} cannot name a {point}", expected="two or more of a-z 0-9 - _ . beginning with a letter, or a URI"
        )
    _TABLE[point][name] = implementation
    _extended.add(point)


def _resolve(point: str, name: str) -> object:
    found = _TABLE[point].get(name)
    if isinstance(found, _ForZarrPython):
        implementation = _imported.get(found)
        if implementation is None:
            implementation = importlib.import_module("tessarr.codecs.zarr_python").load(*found)
            _imported[found] = implementation
        return implementation
    if isinstance(found, str):
        implementation = _imported.get(found)
        if implementation is None:
            module, _, attribute = found.partition(":")
            implementation = _imported[found] = getattr(importlib.import_module(module), attribute)
        return implementation
    return found


def _read_entry_points(point: str) -> None:
    """Add the classes of installed packages; built-in and registered names keep precedence."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=f"tessarr.{point}"):
        _TABLE[point].setdefault(entry.name, entry.value)
        if point != "store_url":
            _extended.add(point)
    for entry in entry_points(group="zarr.codecs") if point == "codec" else ():
        if not entry.value.startswith("tessarr."):
            package = entry.dist.name if entry.dist else entry.module
            _TABLE[point].setdefault(entry.name, _ForZarrPython(entry.name, entry.value, package))
    _entry_points_read.add(point)  # only now: other threads rely on a complete table


def get(point: Point, name: str) -> Any | None:
    """Return the class registered under `name`, or ``None``."""
    found = _resolve(point, name)
    if found is None and point not in _entry_points_read:
        _read_entry_points(point)
        found = _resolve(point, name)
    return found


def is_extended() -> bool:
    """Return whether there are third-party registrations."""
    return bool(_extended)


def names(point: Point) -> Iterator[str]:
    """Return every name known at `point`, entry points included, sorted."""
    if point not in _entry_points_read:
        _read_entry_points(point)
    return iter(sorted(_TABLE[point]))


# -- zarr-python's names -------------------------------------------------------------------------------------------------


def register_codec(key: str, codec_cls: type[Any], *, qualname: str | None = None) -> None:  # noqa: ARG001 - zarr-python's argument
    """Register a codec, which must implement `tessarr.abc.codec`. `qualname` is accepted and has no effect."""
    if not hasattr(codec_cls, "from_json"):
        hint = "Inherit ArrayArrayCodec, ArrayBytesCodec or BytesBytesCodec of tessarr.abc.codec"
        raise BaseZarrError(f"{codec_cls.__name__} does not implement tessarr's contract for codecs", hint=hint)
    if not isinstance(getattr(codec_cls, "name", ""), str):
        codec_cls.registered_name = key
    register("codec", key, codec_cls)


def get_codec_class(key: str, reload_config: bool = False) -> type[object]:  # noqa: ARG001 - zarr-python's argument
    """Return the codec class registered under `key`. Raises `UnknownCodecError`. `reload_config` has no effect."""
    found: type[object] | None = get("codec", key)
    if found is None:
        from tessarr.errors import UnknownCodecError

        raise UnknownCodecError(f"no codec is registered as {key!r}", hint="See tessarr.registry.names('codec')")
    return found


def get_numcodec(data: Mapping[str, object]) -> object:
    """Make the numcodecs object of a configuration such as ``{"id": "zlib", "level": 1}``.

    Raises `UnknownCodecError` for an id that numcodecs does not know, `PickleCodecDisabledError` for pickle.
    """
    import numcodecs
    from numcodecs.errors import UnknownCodecError as UnknownToNumcodecs

    from tessarr.errors import PickleCodecDisabledError, UnknownCodecError

    if data.get("id") == "pickle":
        raise PickleCodecDisabledError("tessarr does not unpickle data, which would run code from it")
    try:
        return numcodecs.get_codec(dict(data))
    except UnknownToNumcodecs as error:
        raise UnknownCodecError(f"numcodecs has no codec {data.get('id')!r}") from error


def register_chunk_key_encoding(key: str, cls: type[object]) -> None:
    """Register a chunk key encoding."""
    register("chunk_key_encoding", key, cls)


def get_chunk_key_encoding_class(key: str) -> type[Any]:
    """Return the chunk key encoding registered under `key`. Raises `KeyError`."""
    found: type[object] | None = get("chunk_key_encoding", key)
    if found is None:
        raise KeyError(f"no chunk key encoding is registered as {key!r}")
    return found


def register_pipeline(pipe_cls: type[object], qualname: str | None = None) -> None:
    """Do nothing: tessarr has engines instead of codec pipelines."""


def register_buffer(cls: type[object], qualname: str | None = None) -> None:
    """Do nothing: tessarr passes plain Python buffers."""


def register_ndbuffer(cls: type[object], qualname: str | None = None) -> None:
    """Do nothing: tessarr reads into NumPy arrays."""


def _no_class(what: str, instead: str) -> type[object]:
    from tessarr.errors import UnsupportedOperationError

    raise UnsupportedOperationError(f"tessarr has no {what} classes", hint=instead)


def get_pipeline_class(reload_config: bool = False) -> type[object]:  # noqa: ARG001 - zarr-python's argument
    """Raise `UnsupportedOperationError`."""
    return _no_class("codec pipeline", "See Array.engine")


def get_buffer_class(reload_config: bool = False) -> type[object]:  # noqa: ARG001 - zarr-python's argument
    """Raise `UnsupportedOperationError`."""
    return _no_class("buffer", "Values are bytes-like objects")


def get_ndbuffer_class(reload_config: bool = False) -> type[object]:  # noqa: ARG001 - zarr-python's argument
    """Raise `UnsupportedOperationError`."""
    return _no_class("buffer", "Chunks are NumPy arrays")
