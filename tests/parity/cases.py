"""Arrays to write: the keywords of `tessarr.create` or `create_array`, and the values that every reader must give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numcodecs
import numpy as np

SHAPE = (7, 10)
CHUNKS = (3, 4)


class Case(NamedTuple):
    """One array."""

    name: str
    keywords: dict[str, Any]
    values: np.ndarray[Any, Any]


def sample(dtype: str) -> np.ndarray[Any, Any]:
    """Values of `dtype` in the shape of all cases; the last chunk is all zero, so that it is not stored."""
    rng = np.random.default_rng(5)
    kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
    if kind == "b":
        values = rng.integers(0, 2, SHAPE).astype(dtype)
    elif kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, SHAPE, dtype=np.dtype(dtype).newbyteorder("=")).astype(dtype)
    elif kind in "fc":
        values = rng.normal(size=SHAPE).astype(dtype)
        values[0, :3] = [np.nan, np.inf, -np.inf]
    elif kind in "mM":
        values = rng.integers(0, 10**6, SHAPE).astype("i8").astype(dtype)
        values[0, 0] = "NaT"
    elif kind == "S":
        values = np.array([f"{n:x}" * 2 for n in range(70)], dtype).reshape(SHAPE)
    elif kind == "U":
        values = np.array([f"ñ{n}日" for n in range(70)], dtype).reshape(SHAPE)
    else:
        values = np.frombuffer(rng.bytes(70 * size), dtype).reshape(SHAPE).copy()
    values[6:, 8:] = np.zeros((), dtype)
    return values


V2_DTYPES = [
    "|b1",
    "|i1",
    "<i2",
    ">i2",
    "<i4",
    ">i8",
    "|u1",
    "<u2",
    ">u4",
    "<u8",
    "<f2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
    "<c8",
    ">c16",
    "<M8[s]",
    ">m8[ns]",
    "|S7",
    "<U5",
    ">U5",
    "|V6",
]
V2_COMPRESSORS: dict[str, Any] = {
    "raw": None,
    "zlib": numcodecs.Zlib(1),
    "gzip": numcodecs.GZip(1),
    "bz2": numcodecs.BZ2(1),
    "lzma": numcodecs.LZMA(),
    "lz4": numcodecs.LZ4(),
    "zstd": numcodecs.Zstd(3),
    "blosc": numcodecs.Blosc("lz4", 5, numcodecs.Blosc.SHUFFLE),
    "blosc-bit": numcodecs.Blosc("zstd", 1, numcodecs.Blosc.BITSHUFFLE),
}
V2_FILTERS: dict[str, tuple[str, list[Any]]] = {
    "delta": ("<i4", [numcodecs.Delta("<i4")]),
    "delta-narrow": ("<i8", [numcodecs.Delta("<i8", "<i4")]),
    "scale": ("<f8", [numcodecs.FixedScaleOffset(offset=0, scale=100, dtype="<f8", astype="<i4")]),
    "quantize": ("<f4", [numcodecs.Quantize(digits=3, dtype="<f4")]),
    "shuffle": ("<i4", [numcodecs.Shuffle(4)]),
    "packbits": ("|b1", [numcodecs.PackBits()]),
    "astype": ("<f8", [numcodecs.AsType(encode_dtype="<f4", decode_dtype="<f8")]),
    "crc32": ("<i4", [numcodecs.CRC32()]),
    "two": ("<i4", [numcodecs.Delta("<i4"), numcodecs.Shuffle(4)]),
}
STRUCT = np.dtype([("a", "<i4"), ("b", ">f8"), ("s", "|S3"), ("n", [("x", "<u2"), ("y", "|b1")])])


def v2_cases() -> Iterator[Case]:
    """Every data type in both orders; every compressor; every filter; separators, fill values, objects, no dimensions."""
    for n, dtype in enumerate(V2_DTYPES):
        for order in "CF":
            compressor = list(V2_COMPRESSORS.values())[n % len(V2_COMPRESSORS)]
            keywords = {"dtype": dtype, "order": order, "compressor": compressor}
            yield Case(f"dtype{n}{order}", keywords, sample(dtype))
    for name, compressor in V2_COMPRESSORS.items():
        for order, separator in (("C", "/"), ("F", ".")):
            keywords = {"dtype": "<f4", "order": order, "compressor": compressor, "dimension_separator": separator}
            yield Case(f"{name}{order}", keywords, sample("<f4"))
    for name, (dtype, filters) in V2_FILTERS.items():
        for order in "CF":
            values = np.arange(70).reshape(SHAPE).astype(dtype)
            keywords = {"dtype": dtype, "order": order, "filters": filters, "compressor": numcodecs.Zlib(1)}
            yield Case(f"filter-{name}{order}", keywords, values)
    yield from _v2_special()


def _v2_special() -> Iterator[Case]:
    records = np.zeros(SHAPE, STRUCT)
    records["a"] = np.arange(70).reshape(SHAPE)
    records["b"] = 0.5
    records["s"] = b"ab"
    records["n"]["x"] = 7
    records[6:, 8:] = np.zeros((), STRUCT)
    yield Case("struct", {"dtype": STRUCT, "fill_value": np.zeros((), STRUCT)[()]}, records)
    flat = np.zeros(SHAPE, [("a", "<i4"), ("b", "<f8")])
    flat["a"] = np.arange(70).reshape(SHAPE)
    yield Case("struct-flat", {"dtype": flat.dtype}, flat)
    for fill in (0, -3, None):
        values = np.full(SHAPE, 0 if fill is None else fill, "<i4")
        values[0, 0] = 5
        yield Case(f"fill{fill}", {"dtype": "<i4", "fill_value": fill}, values)
    for n, number in enumerate((np.nan, np.inf, -np.inf, 0.1)):
        values = np.full(SHAPE, number, "<f8")
        values[0, 0] = 5
        yield Case(f"fill-float{n}", {"dtype": "<f8", "fill_value": number}, values)
    yield Case("fill-bytes", {"dtype": "|S4", "fill_value": b"abcd"}, np.full(SHAPE, b"abcd", "|S4"))
    yield Case("fill-text", {"dtype": "<U4", "fill_value": "añ"}, np.full(SHAPE, "añ", "<U4"))
    yield Case("scalar", {"dtype": "<f8", "chunks": ()}, np.array(2.5))
    yield Case("empty", {"dtype": "<f8", "chunks": (3, 4)}, np.empty((0, 10)))
    words = np.array([f"wört {n}" for n in range(70)], object).reshape(SHAPE)
    yield Case("vlen-utf8", {"dtype": object, "object_codec": numcodecs.VLenUTF8(), "fill_value": ""}, words)
    blobs = np.array([b"x" * (n % 5) for n in range(70)], object).reshape(SHAPE)
    yield Case("vlen-bytes", {"dtype": object, "object_codec": numcodecs.VLenBytes(), "fill_value": b""}, blobs)


V3_DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
BLOSC = {
    "name": "blosc",
    "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
}
CRC = {"name": "crc32c"}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def _sharding(codecs: list[Any], location: str = "end", chunk_shape: tuple[int, ...] = (2, 2)) -> dict[str, Any]:
    configuration = {
        "chunk_shape": list(chunk_shape),
        "codecs": codecs,
        "index_codecs": [LITTLE, CRC],
        "index_location": location,
    }
    return {"name": "sharding_indexed", "configuration": configuration}


V3_CHAINS: dict[str, list[Any]] = {
    "raw": [LITTLE],
    "big": [BIG],
    "gzip": [LITTLE, GZIP],
    "zstd": [LITTLE, ZSTD],
    "blosc": [LITTLE, BLOSC],
    "crc32c": [LITTLE, CRC],
    "several": [TRANSPOSE, BIG, GZIP, ZSTD, CRC],
    "transpose": [TRANSPOSE, LITTLE],
    "shards": [_sharding([LITTLE])],
    "shards-zstd": [_sharding([LITTLE, ZSTD])],
    "shards-start": [_sharding([LITTLE, GZIP], "start")],
    "shards-transposed": [_sharding([TRANSPOSE, LITTLE, BLOSC])],
    "shards-in-shards": [_sharding([_sharding([LITTLE, CRC], chunk_shape=(1, 2))])],
}


def v3_cases() -> Iterator[Case]:
    """Every data type; every chain; key encodings, fill values, strings, no dimensions."""
    for n, name in enumerate(V3_DTYPES):
        chain = [LITTLE, (ZSTD, GZIP, CRC)[n % 3]]
        yield Case(f"dtype-{name}", {"dtype": name, "codecs": chain}, sample(np.dtype(name).str))
    for name, chain in V3_CHAINS.items():
        yield Case(name, {"dtype": "float32", "codecs": chain, "chunks": (4, 4)}, sample("<f4"))
    for n, keys in enumerate(
        [
            {"name": "v2", "configuration": {"separator": "."}},
            {"name": "v2", "configuration": {"separator": "/"}},
            {"name": "default", "configuration": {"separator": "."}},
        ]
    ):
        yield Case(f"keys{n}", {"dtype": "int32", "chunk_key_encoding": keys, "codecs": [LITTLE]}, sample("<i4"))
    for n, number in enumerate((np.nan, np.inf, -np.inf, 0.1)):
        values = np.full(SHAPE, number)
        values[0, 0] = 5
        yield Case(f"fill{n}", {"dtype": "float64", "fill_value": number, "codecs": [LITTLE]}, values)
    yield Case("scalar", {"dtype": "float64", "chunks": (), "codecs": [LITTLE]}, np.array(2.5))
    yield Case("empty", {"dtype": "float64", "codecs": [LITTLE]}, np.empty((0, 10)))
    words = np.array([f"wört {n}" for n in range(70)], object).reshape(SHAPE)
    yield Case("string", {"dtype": "string", "codecs": [{"name": "vlen-utf8"}, ZSTD]}, words)


def equal(read: Any, values: np.ndarray[Any, Any]) -> bool:
    """Whether what a reader gives is `values`, element for element; NaN and NaT equal themselves."""
    read = np.asarray(read)
    if read.shape != values.shape:
        return False
    if values.dtype.kind in "OTU" or values.dtype.names:
        return bool((read == values).all())
    if values.dtype.kind in "fc":
        return np.array_equal(read, values, equal_nan=True)
    return bool(read.astype(values.dtype).tobytes() == values.tobytes())
