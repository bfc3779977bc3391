"""The native engine gives the reference engine's results: values, errors, and the meaning of what it stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessarr
from tessarr.engine.native import NativeEngine
from tessarr.engine.reference import ReferenceEngine
from tessarr.indexing.selection import Outer, Points, Selection
from tessarr.stores.memory import MemoryStore

REFERENCE = ReferenceEngine()
DTYPES = ["u1", "i2", "u4", "f4", "f8", "c8", "c16", "?", "f2", "i8", "M8[s]", "V5", [("a", "i2"), ("b", "f8")]]
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
