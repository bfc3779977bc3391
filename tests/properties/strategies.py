"""Random arrays in random layouts, for property tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

DTYPES = ["bool", "int8", "<i2", ">i4", "<u8", "<f4", ">f8", "<f2", "<c8", "S3", "<U2", "<M8[s]", "V3"]
STRUCT = np.dtype([("a", "<i2"), ("b", "u1"), ("c", "<f8")])


def codec(name: str, **configuration: Any) -> dict[str, Any]:
    """A v3 codec object."""
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


BYTE_CODECS = [
    [],
    [codec("zstd", level=1, checksum=False)],
    [codec("gzip", level=1)],
    [codec("crc32c")],
    [codec("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0), codec("crc32c")],
    [codec("blosc", cname="zstd", clevel=3, shuffle="bitshuffle", typesize=2, blocksize=0)],
    [codec("numcodecs.zlib", level=1)],
    [codec("numcodecs.lz4", acceleration=1)],
]


class Layout(NamedTuple):
    """How an array is stored."""

    zarr_format: int
    shape: tuple[int, ...]
    chunks: Any
    shards: tuple[int, ...] | None
    dtype: np.dtype[Any]
    fill_value: Any
    filters: list[Any]
    compressors: list[Any]
    order: str
    index_location: str
    write_empty_chunks: bool

    def arguments(self) -> dict[str, Any]:
        """Keywords for `tessarr.create_array`."""
        given: dict[str, Any] = {
            "shape": self.shape,
            "dtype": self.dtype,
            "chunks": self.chunks,
            "zarr_format": self.zarr_format,
            "fill_value": self.fill_value,
            "config": {"write_empty_chunks": self.write_empty_chunks},
        }
        if self.zarr_format == 3:
            given["filters"] = self.filters
            given["compressors"] = self.compressors
            if self.shards:
                given["shards"] = {"shape": self.shards, "index_location": self.index_location}
        else:
            given["order"] = self.order
            given["compressors"] = None if not self.compressors else _numcodec(self.compressors[0])
        return given


def _numcodec(codec: dict[str, Any]) -> dict[str, Any] | None:
    name, options = codec["name"], codec.get("configuration", {})
    if name == "blosc":
        shuffle = {"shuffle": 1, "bitshuffle": 2}[options["shuffle"]]
        return {
            "id": "blosc",
            "cname": options["cname"],
            "clevel": options["clevel"],
            "shuffle": shuffle,
            "blocksize": 0,
        }
    if name in ("zstd", "gzip"):
        return {"id": name, "level": options["level"]}
    return {"id": "zlib", "level": 1}


@st.composite
def layouts(draw: st.DrawFn, *, min_dims: int = 0, formats: tuple[int, ...] = (2, 3)) -> Layout:
    """A layout that tessarr can write."""
    zarr_format = draw(st.sampled_from(formats))
    ndim = draw(st.integers(min_dims, 3))
    shape = tuple(draw(st.lists(st.integers(0 if draw(st.booleans()) else 1, 9), min_size=ndim, max_size=ndim)))
    inner = tuple(draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
    dtype = np.dtype(draw(st.sampled_from([*DTYPES, STRUCT])))
    shards = None
    filters: list[Any] = []
    chunks: Any = inner
    if zarr_format == 3:
        if draw(st.booleans()):
            shards = tuple(n * draw(st.integers(1, 3)) for n in inner)
        elif ndim and draw(st.booleans()) and 0 not in shape:
            chunks = [_pieces(draw, n) for n in shape]
        if ndim and draw(st.booleans()) and len(set(inner)) == 1:
            filters = [codec("transpose", order=draw(st.permutations(list(range(ndim)))))]
    fill = draw(st.sampled_from([None, "some"]))
    fill_value = None if fill is None else draw(elements(dtype))
    return Layout(
        zarr_format,
        shape,
        chunks,
        shards,
        dtype,
        fill_value,
        filters,
        draw(st.sampled_from(BYTE_CODECS)),
        draw(st.sampled_from("CF")),
        draw(st.sampled_from(["start", "end"])),
        draw(st.booleans()),
    )


def _pieces(draw: st.DrawFn, length: int) -> list[int]:
    pieces: list[int] = []
    while sum(pieces) < length:
        pieces.append(draw(st.integers(1, 4)))
    return pieces


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    """One element of `dtype`, as a NumPy scalar."""
    return values((), dtype).map(lambda a: a[()])


def values(shape: tuple[int, ...], dtype: np.dtype[Any]) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """An array of `shape`: few distinct values, so that chunks of one value happen."""
    if dtype.kind == "V" and dtype.names is None:
        size = int(np.prod(shape)) * dtype.itemsize
        return st.binary(min_size=size, max_size=size).map(lambda raw: np.frombuffer(raw, dtype).reshape(shape).copy())
    return hnp.arrays(dtype, shape, fill=hnp.from_dtype(dtype))


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Basic selections: integers, slices with positive and negative steps."""
    picks: list[Any] = []
    for n in shape:
        if n and draw(st.integers(0, 3)) == 0:
            picks.append(draw(st.integers(-n, n - 1)))
        else:
            picks.append(draw(st.slices(n)))
    return tuple(picks)
