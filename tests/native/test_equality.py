"""The native engine gives the reference engine's results: values, errors, and the meaning of what it stores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.engine.native.engine import NativeEngine
from tessarr.engine.reference.engine import ReferenceEngine
from tessarr.indexing.selection import Outer, Points, Selection
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.protocols import PlainFiles

REFERENCE = ReferenceEngine()
DTYPES: list[Any] = [
    "S3",
    "U2",
    "u1",
    "i2",
    "u4",
    "f4",
    "f8",
    "c8",
    "c16",
    "?",
    "f2",
    "i8",
    "M8[s]",
    "V5",
    [("a", "i2"), ("b", "f8")],
]
COMPRESSORS: list[Any] = [
    None,
    {"name": "gzip", "configuration": {"level": 1}},
    {"name": "zstd", "configuration": {"level": 1, "checksum": True}},
    {"name": "crc32c"},
    *(
        {
            "name": "blosc",
            "configuration": {"cname": c, "clevel": 5, "shuffle": s, "typesize": t, "blocksize": b},
        }
        for c, s, t, b in [
            ("lz4", "shuffle", 4, 0),
            ("lz4hc", "bitshuffle", 2, 0),
            ("blosclz", "shuffle", 8, 256),
            ("zlib", "noshuffle", 1, 0),
            ("zstd", "bitshuffle", 1, 512),
        ]
    ),
]
V1_BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": 1}
V2_COMPRESSORS: list[Any] = [
    None,
    {"id": "zlib", "level": 3},
    {"id": "bz2", "level": 1},
    {"id": "lz4", "acceleration": 1},
    {"id": "gzip", "level": 2},
    {"id": "zstd", "level": 1},
    {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
    {"id": "blosc", "cname": "blosclz", "clevel": 9, "shuffle": 1, "blocksize": 0},
]
V2_FILTERS = [None, "shuffle", "crc32", "adler32", "crc32c", "fletcher32"]


def random_values(dtype: Any, shape: tuple[int, ...], seed: int) -> npt.NDArray[Any]:
    """Values with repeats, of any fixed-size dtype."""
    generator = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    n = int(np.prod(shape))
    if dtype.kind in "?b":
        flat: npt.NDArray[Any] = generator.integers(0, 2, n).astype(bool)
    elif dtype.kind == "U":
        flat = np.array([f"{i % 90}" for i in generator.integers(0, 500, n)], dtype)
    elif dtype.fields is not None or dtype.kind in "SV":
        flat = np.frombuffer(generator.integers(1, 120, n * dtype.itemsize).astype("u1").tobytes(), dtype)
    else:
        flat = generator.integers(0, 100, n).astype("i8").astype(dtype)
    return flat.reshape(shape)


@st.composite
def dims(draw: st.DrawFn, length: int) -> slice | npt.NDArray[np.int64]:
    """A slice or an index array for an axis."""
    if draw(st.integers(0, 2)) and length:
        start = draw(st.integers(0, length - 1))
        step = draw(st.integers(1, 5))
        n = draw(st.integers(1, (length - 1 - start) // step + 1))
        return slice(start, start + (n - 1) * step + 1, step)
    if length and draw(st.booleans()):
        return np.array(draw(st.lists(st.integers(0, length - 1), max_size=9)), np.int64)
    return slice(0, length, 1) if length else slice(0, 0, 1)


@st.composite
def selections(draw: st.DrawFn, shape: tuple[int, ...]) -> Selection:
    """An outer or a point selection; half of the outer ones are everything."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return Outer(tuple(slice(0, n, 1) for n in shape))
    if kind == 1 and shape and all(shape):
        n = draw(st.integers(0, 20))
        coords = [draw(st.lists(st.integers(0, m - 1), min_size=n, max_size=n)) for m in shape]
        return Points(tuple(np.array(c, np.int64) for c in coords))
    return Outer(tuple(draw(dims(n)) for n in shape))


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `create_array`."""
    ndim = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 25)) for _ in range(ndim))
    dtype = draw(st.sampled_from(DTYPES))
    inner = tuple(draw(st.integers(1, 7)) for _ in range(ndim))
    layout: dict[str, Any] = {"shape": shape, "dtype": np.dtype(dtype), "chunks": inner}
    if draw(st.booleans()):
        layout |= {
            "zarr_format": 2,
            "compressors": draw(st.sampled_from(V2_COMPRESSORS)),
            "order": draw(st.sampled_from("CF")),
        }
        layout["dtype"] = np.dtype(dtype).newbyteorder(draw(st.sampled_from("<>")))
        name = draw(st.sampled_from(V2_FILTERS))
        options = {"elementsize": np.dtype(dtype).itemsize} if name == "shuffle" else {}
        layout["filters"] = name and [{"id": name, **options}]
        return layout
    layout["compressors"] = draw(st.sampled_from(COMPRESSORS))
    if draw(st.booleans()) and ndim:
        layout["shards"] = tuple(n * draw(st.integers(1, 3)) for n in inner)
    if draw(st.booleans()):
        layout["serializer"] = {"name": "bytes", "configuration": {"endian": draw(st.sampled_from(["big", "little"]))}}
    if ndim and draw(st.booleans()):
        layout["filters"] = [{"name": "transpose", "configuration": {"order": draw(st.permutations(range(ndim)))}}]
    return layout


def sharding(chunk: tuple[int, ...], inner: list[Any], location: str, index: list[Any]) -> dict[str, Any]:
    """The sharding codec."""
    options = {"chunk_shape": chunk, "codecs": inner, "index_codecs": index, "index_location": location}
    return {"name": "sharding_indexed", "configuration": options}


@st.composite
def v1_documents(draw: st.DrawFn) -> dict[str, Any]:
    """The documents of a v1 array, by key."""
    ndim = draw(st.integers(1, 3))
    compression, options = draw(st.sampled_from([("none", None), ("zlib", 1), ("bz2", 1), ("blosc", V1_BLOSC)]))
    meta = {
        "zarr_format": 1,
        "shape": [draw(st.integers(0, 25)) for _ in range(ndim)],
        "chunks": [draw(st.integers(1, 7)) for _ in range(ndim)],
        "dtype": draw(st.sampled_from(["<u2", ">i4", "|u1", "<f8", "|b1", "|S3", "<U2"])),
        "compression": compression,
        "compression_opts": options,
        "fill_value": None,
        "order": draw(st.sampled_from("CF")),
    }
    return {"meta": meta, "attrs": {}}


@st.composite
def v3_documents(draw: st.DrawFn) -> dict[str, Any]:
    """The document of a v3 array with a rectilinear grid, up to three levels of shards, or both."""
    ndim = draw(st.integers(1, 3))
    codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": draw(st.sampled_from(["big", "little"]))}}]
    compressor = draw(st.sampled_from(COMPRESSORS[:4]))
    codecs += [compressor] if compressor else []
    cubes = draw(st.booleans())  # transpositions keep the shape of cubes only, at every level

    def lengths(most: int) -> list[int]:
        return [draw(st.integers(1, most))] * ndim if cubes else [draw(st.integers(1, most)) for _ in range(ndim)]

    chunk = lengths(4)
    depth = draw(st.integers(0, 3))
    for _ in range(depth):
        if cubes and draw(st.booleans()):
            codecs.insert(0, {"name": "transpose", "configuration": {"order": draw(st.permutations(range(ndim)))}})
        location = draw(st.sampled_from(["start", "end"]))
        index: list[Any] = [{"name": "bytes", "configuration": {"endian": draw(st.sampled_from(["big", "little"]))}}]
        index += [{"name": "crc32c"}] if draw(st.booleans()) else []
        codecs = [sharding(tuple(chunk), codecs, location, index)]
        chunk = [n * m for n, m in zip(chunk, lengths(2), strict=True)]
    if draw(st.booleans()):
        shape = [draw(st.integers(1, 25)) for _ in range(ndim)]
        grid: Any = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    else:
        runs = [[n * m for m in draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))] for n in chunk]
        shape = [sum(run) for run in runs]
        grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": runs}}
    encoding = {"name": "default", "configuration": {"separator": draw(st.sampled_from("/."))}}
    dtype = draw(st.sampled_from(["uint8", "uint16", "int32", "float64"]))
    document = {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": dtype, "chunk_grid": grid}
    document |= {"chunk_key_encoding": encoding, "fill_value": draw(st.integers(0, 9)), "codecs": codecs}
    return {"zarr.json": document | {"attributes": {}}}


def put(where: Any, documents: dict[str, Any]) -> Any:
    """The array of `documents` in an emptied folder or a new memory store."""
    if isinstance(where, MemoryStore):
        for key, document in documents.items():
            where.set(key, json.dumps(document).encode())
    else:
        shutil.rmtree(where, ignore_errors=True)
        Path(where).mkdir()
        for key, document in documents.items():
            Path(where, key).write_text(json.dumps(document))
    return tessarr.open_array(where, mode="r+")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for the arrays of all examples."""
    return tmp_path_factory.mktemp("equality")


def make(store: Any, layout: dict[str, Any], **options: Any) -> Any:
    """A new array, its bound form served by neither engine yet."""
    return tessarr.create_array(store, overwrite=True, **layout, **options)


def keys(root: Path) -> list[str]:
    """Everything below `root`, directories, locks and temporary files included."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_both_engines_read_and_write_the_same(folder: Path, data: st.DataObject) -> None:
    layout = data.draw(layouts())
    write_empty = data.draw(st.booleans())
    stores: list[Any] = [str(folder / "native"), str(folder / "reference")]
    if data.draw(st.integers(0, 3)) == 0:
        stores = [MemoryStore(), MemoryStore()]
    ours, theirs = (make(store, layout, config={"write_empty_chunks": write_empty}) for store in stores)
    assert_equal(stores, ours, theirs, data)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_both_engines_serve_v1_rectilinear_grids_and_nested_shards_alike(folder: Path, data: st.DataObject) -> None:
    documents = data.draw(v3_documents() | v1_documents())
    stores: list[Any] = [str(folder / "native"), str(folder / "reference")]
    if data.draw(st.integers(0, 3)) == 0:
        stores = [MemoryStore(), MemoryStore()]
    ours, theirs = (put(store, documents) for store in stores)
    assert_equal(stores, ours, theirs, data)


def assert_equal(stores: list[Any], ours: Any, theirs: Any, data: st.DataObject) -> None:
    """Random writes, one engine each; then the same keys, and both engines read both arrays alike."""
    folder = Path(stores[0]).parent if isinstance(stores[0], str) else Path()
    layout = {"shape": ours.shape}
    native = NativeEngine()
    assert native.supports(ours._bound) is None
    expected = np.full(layout["shape"], ours._bound.fill, ours._bound.dtype)
    for step in range(data.draw(st.integers(1, 3))):
        where = data.draw(selections(layout["shape"]))
        value = random_values(ours._bound.dtype, where.shape, step)
        if data.draw(st.integers(0, 4)) == 0:
            value = np.broadcast_to(ours._bound.fill, where.shape)
        native.write(ours._bound, where, value)
        REFERENCE.write(theirs._bound, where, value)
        expected[where.index] = value
    if isinstance(stores[0], str):
        assert keys(folder / "native") == keys(folder / "reference")
    else:
        assert sorted(stores[0].list()) == sorted(stores[1].list())
    for _ in range(3):
        where = data.draw(selections(layout["shape"]))
        for bound in (ours._bound, theirs._bound):
            for engine in (native, REFERENCE):
                out = np.empty(where.shape, bound.dtype)
                engine.read(bound, where, out)
                wanted = np.array(expected[where.index], bound.dtype)  # of a 0-d array NumPy gives a scalar
                assert out.tobytes() == wanted.tobytes(), engine.name
    if layout["shape"] and all(layout["shape"]):
        at = tuple(data.draw(st.integers(-n, n - 1)) for n in layout["shape"])
        for _ in range(3):  # from the file, then into the cache, then out of it
            element = native.element(ours._bound, at)
            assert (element is not None) == (
                isinstance(ours._bound.store, PlainFiles) and ours._bound.dtype.kind in "biufc"
            )
            assert element is None or element.tobytes() == expected[at].tobytes()
