"""Random metadata documents in every permitted spelling, for property tests: what files hold, not what users ask for."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tessarr.dtypes.base import DataType
from tessarr.dtypes.parse import from_v3

CORE = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
OTHERS: list[Any] = [
    *("bfloat16", "int2", "int4", "uint2", "uint4", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn"),
    *("float6_e3m2fn", "float4_e2m1fn", "complex_float16", "complex_bfloat16", "complex_float8_e5m2"),
    *("r8", "r24", "r64", "string", "bytes", "variable_length_bytes"),
    {"name": "numpy.datetime64", "configuration": {"unit": "ns", "scale_factor": 1}},
    {"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 10}},
    {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}},
    {"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}},
    {"name": "raw_bytes", "configuration": {"length_bytes": 3}},
    {
        "name": "struct",
        "configuration": {"fields": [{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "float64"}]},
    },
]
_BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}
_TEXTS: dict[str, list[Any]] = {"string": ["", "a", "日本", "x" * 30], "bytes": [b"", b"\0", b"abc" * 5]}


def _named(draw: st.DrawFn, name: str, **configuration: Any) -> Any:
    """An extension object in one of its spellings: a string, without configuration, with one, to be understood."""
    if not configuration and draw(st.booleans()):
        return name
    made: dict[str, Any] = {"name": name}
    if draw(st.booleans()) if not configuration else True:
        made["configuration"] = configuration
    if draw(st.integers(0, 5)) == 0:
        made["must_understand"] = draw(st.booleans())
    return made


def _bytes_to_bytes(draw: st.DrawFn) -> list[Any]:
    made = []
    for kind in draw(st.lists(st.sampled_from(["gzip", "zstd", "blosc", "crc32c", "zlib", "adler32"]), max_size=2)):
        if kind == "gzip":
            made.append(_named(draw, "gzip", level=draw(st.integers(0, 9))))
        elif kind == "zstd":
            made.append(_named(draw, "zstd", level=draw(st.integers(-2, 5)), checksum=draw(st.booleans())))
        elif kind == "blosc":
            members = {"cname": draw(st.sampled_from(["lz4", "lz4hc", "blosclz", "zstd", "zlib"])), "blocksize": 0}
            members |= {"clevel": draw(st.integers(0, 9)), "typesize": draw(st.sampled_from([1, 2, 3, 4, 8]))}
            made.append(
                _named(draw, "blosc", shuffle=draw(st.sampled_from(["noshuffle", "shuffle", "bitshuffle"])), **members)
            )
        elif kind == "crc32c":
            made.append(_named(draw, "crc32c"))
        else:
            made.append({"name": f"numcodecs.{kind}", "configuration": {"level": 1} if kind == "zlib" else {}})
    return made


def _chain(draw: st.DrawFn, data_type: DataType, shape: list[int], depth: int = 0) -> list[Any]:
    made = []
    if draw(st.integers(0, 2)) == 0:
        order = draw(st.permutations(range(len(shape))))
        made.append(_named(draw, "transpose", order=list(order)))
        shape = [shape[axis] for axis in order]
    if depth < 2 and draw(st.integers(0, 1 + depth)) == 0:
        inner = [draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0])) for size in shape]
        index = [{"name": "bytes", "configuration": {"endian": draw(st.sampled_from(["little", "big"]))}}]
        members: dict[str, Any] = {"chunk_shape": inner, "codecs": _chain(draw, data_type, inner, depth + 1)}
        members["index_codecs"] = [*index, *([_named(draw, "crc32c")] if draw(st.booleans()) else [])]
        if draw(st.booleans()):
            members["index_location"] = draw(st.sampled_from(["start", "end"]))
        made.append({"name": "sharding_indexed", "configuration": members})
        return [*made, *(_bytes_to_bytes(draw) if draw(st.integers(0, 4)) == 0 else [])]
    if data_type.itemsize is None:
        made.append(_named(draw, "vlen-utf8" if data_type.name == "string" else "vlen-bytes"))
    elif data_type.itemsize == 1 and draw(st.booleans()):
        made.append(_named(draw, "bytes"))
    else:
        made.append(_named(draw, "bytes", endian=draw(st.sampled_from(["little", "big"]))))
    return [*made, *_bytes_to_bytes(draw)]


def _rectilinear(draw: st.DrawFn, shape: list[int], unit: int) -> Any:
    """A grid whose lengths are multiples of `unit`: bare numbers, lists, and runs."""
    axes: list[Any] = []
    for length in shape:
        sizes: list[int] = []
        while sum(sizes) < length:
            sizes.append(unit * draw(st.integers(1, 3)))
        spelled: list[Any] = [[size, 1] if draw(st.booleans()) else size for size in sizes]
        axes.append(unit * 2 if draw(st.booleans()) else spelled)
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": axes}}


@st.composite
def v3_documents(draw: st.DrawFn) -> dict[str, Any]:
    """A ``zarr.json`` of an array that tessarr can write."""
    said = draw(st.sampled_from(CORE) | st.sampled_from(OTHERS))
    data_type = from_v3(said)
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 8]), max_size=3))
    chunks = [draw(st.sampled_from([1, 2, 3, 4, 6])) for _ in shape]
    grid: Any = {"name": "regular", "configuration": {"chunk_shape": chunks}}
    if shape and 0 not in shape and draw(st.integers(0, 5)) == 0:
        unit = draw(st.integers(1, 2))
        grid, chunks = _rectilinear(draw, shape, unit), [unit] * len(shape)
    fill = data_type.default_fill()
    if data_type.itemsize is not None and draw(st.booleans()):
        fill = draw(elements((), data_type))
    document: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": said,
        "chunk_grid": grid,
        "chunk_key_encoding": draw(
            st.sampled_from(["default", "v2", {"name": "v2", "configuration": {"separator": "/"}}, {"name": "default"}])
        ),
        "fill_value": data_type.dump_fill(fill, 3),
        "codecs": _chain(draw, data_type, chunks),
    }
    if draw(st.booleans()):
        document["dimension_names"] = [draw(st.sampled_from([None, "x"])) for _ in shape]
    if draw(st.booleans()):
        document["something"] = {"must_understand": False, "for": "others"}
    return document


@st.composite
def elements(draw: st.DrawFn, shape: tuple[int, ...], data_type: DataType) -> Any:
    """Values of any bits that the type has; few of them, so that chunks of one value happen."""
    count, dtype = int(np.prod(shape)), data_type.dtype
    if data_type.itemsize is None:
        made = np.empty(count, object)
        made[:] = draw(st.lists(st.sampled_from(_TEXTS[data_type.name]), min_size=count, max_size=count))
        return made.reshape(shape)
    if dtype.names and data_type.name == "struct":
        made = np.zeros(shape, dtype)
        for name in dtype.names:
            made[name] = draw(elements(shape, from_v3({"a": "int16", "b": "float64"}[name])))
        return made
    if dtype.kind == "U":
        texts = draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=3), min_size=count, max_size=count))
        return np.array(texts, dtype).reshape(shape)
    pool = draw(st.lists(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize), min_size=1, max_size=3))
    raw = b"".join(draw(st.lists(st.sampled_from(pool), min_size=count, max_size=count)))
    octets = np.frombuffer(raw, "u1").copy()
    if data_type.name == "bool":
        octets %= 2
    elif data_type.name in _BITS:
        octets %= 1 << _BITS[data_type.name]
        if not data_type.name.startswith("float"):
            return octets.astype(dtype).reshape(shape)
    return octets.view(dtype).reshape(shape)


def bits(values: Any, data_type: DataType) -> Any:
    """`values` as something that is equal only to the same bits."""
    if data_type.itemsize is None:
        items = values.reshape(-1).tolist() if isinstance(values, np.ndarray) else [values]
        return [base64.b64encode(item) if isinstance(item, bytes) else item for item in items]
    return np.ascontiguousarray(np.asarray(values).astype(data_type.dtype)).tobytes()
