"""Strategies: layouts, stores, selections and values of zarr-python's arrays, and how two outcomes are compared."""

from __future__ import annotations

import asyncio
import itertools
import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import zarr
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec
from zarr.core.array_spec import ArrayConfigParams
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, ZipStore

DTYPES = (
    "int32", "uint8", "float64", "float32", "bool", "complex64", ">i2", "U3", "S2", "datetime64[s]", "timedelta64[ms]", str,
    "V3", [("a", "<i4"), ("b", "<f4")],
)  # fmt: skip
COMPRESSORS = ("auto", None, "gzip", "blosc", "crc32c")
_NUMBERS = itertools.count()
STORES = ("local", "memory", "zip", "fsspec", "obstore")


class Layout(NamedTuple):
    """What an array is made with."""

    dtype: Any
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    order: Literal["C", "F"]
    zarr_format: Literal[2, 3]
    compressor: str | None
    fill: int
    write_empty: bool
    store: str
    seed: int

    def make(self) -> Any:
        """An array, half of which is written."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            z = zarr.create_array(
                made(self.store),
                name="deep/a",
                shape=self.shape,
                chunks=self.chunks,
                shards=self.shards,
                dtype=self.dtype,
                order=self.order if self.zarr_format == 2 else None,
                zarr_format=self.zarr_format,
                compressors=_compressors(self.compressor, self.zarr_format),
                fill_value=np.asarray(
                    values(np.dtype("T") if self.dtype is str else np.dtype(self.dtype), (), self.fill)
                )[()],
                config=ArrayConfigParams(order=self.order, write_empty_chunks=self.write_empty),
            )
            half = tuple(slice(0, (n + 1) // 2) for n in self.shape)
            if self.store != "zip":  # where a second value of a key is one more in the archive
                z[half] = values(z.dtype, tuple((n + 1) // 2 for n in self.shape), self.seed)
        return z


def errs(layout: Layout, kind: str) -> bool:
    """Whether this zarr-python writes a wrong value to such an array, or refuses one that fits (tessarr does not).

    Before 3.3 it stores text of results in Fortran order transposed. Before 3.4 it refuses values for part of a shard that is
    selected by an integer and an array.
    """
    release = tuple(map(int, zarr.__version__.split(".")[:2]))
    text = layout.dtype is str and layout.order == "F" and release < (3, 3)
    return text or (layout.shards is not None and kind == "orthogonal" and release < (3, 4))


def made(kind: str) -> Any:
    """A new store of zarr-python."""
    if kind == "memory":
        return MemoryStore()
    if kind == "obstore":
        from obstore.store import MemoryStore as Held

        return ObjectStore(Held())
    if kind == "fsspec":
        return FsspecStore.from_url(f"memory://tessarr-{next(_NUMBERS)}")
    place = Path(tempfile.mkdtemp(prefix="tessarr-"))
    if kind == "zip":
        return ZipStore(place / "a.zip", mode="w")
    return LocalStore(place)


def _compressors(name: str | None, zarr_format: int) -> Any:
    if name in ("auto", None):
        return name
    if zarr_format == 2:
        import numcodecs

        return {"gzip": numcodecs.GZip(1), "blosc": numcodecs.Blosc("lz4"), "crc32c": numcodecs.CRC32C()}[name]
    return {
        "gzip": GzipCodec(level=1),
        "blosc": BloscCodec(),
        "crc32c": Crc32cCodec(),
    }[name]


def values(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> Any:
    """Small numbers, also of types that have none; every third seed gives zeros."""
    rng = np.random.default_rng(seed)
    numbers = np.asarray(rng.integers(0, 5, shape) * (seed % 3 != 0))
    if dtype.kind in "USTO":
        return numbers.astype("U1").astype(dtype)
    if dtype.kind == "V":
        return np.frombuffer(rng.bytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape) if dtype.names is None else (
            np.stack([numbers] * len(dtype.names), -1).astype("<i4").view([(name, "<i4") for name in dtype.names])[..., 0]
            .astype(dtype)
        )  # fmt: skip
    return numbers.astype("i8" if dtype.kind in "mM" else dtype).astype(dtype)


@st.composite
def layouts(draw: Any, stores: tuple[str, ...] = STORES, min_ndim: int = 0) -> Layout:
    """An array of at most 3 axes and 9 elements along each."""
    zarr_format = draw(st.sampled_from([3, 3, 2]))
    ndim = draw(st.integers(min_ndim, 3))
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=ndim, max_size=ndim)))
    chunks = tuple(draw(st.integers(1, n)) for n in shape)
    sharded = zarr_format == 3 and ndim and draw(st.booleans())
    shards = tuple(n * draw(st.integers(1, 3)) for n in chunks) if sharded else None
    # zarr-python has no v3 type of that byte order, and cannot write the others into shards ("unhashable type")
    left_out = [">i2"] * (zarr_format == 3) + ["V3", DTYPES[-1]] * (shards is not None)
    dtypes = [name for name in DTYPES if name not in left_out]
    return Layout(
        draw(st.sampled_from(dtypes)),
        shape,
        chunks,
        shards,
        draw(st.sampled_from("CF")),
        zarr_format,
        draw(st.sampled_from(COMPRESSORS)),
        draw(st.integers(0, 3)),
        draw(st.booleans()),
        draw(st.sampled_from(stores)),
        draw(st.integers(0, 99)),
    )


# -- selections ----------------------------------------------------------------------------------------------------------


@st.composite
def _slices(draw: Any, n: int) -> slice:
    bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 1, 2, 3, -1])))


def _positions(n: int, beyond: int = 0) -> st.SearchStrategy[int]:
    return st.integers(-n - beyond, n - 1 + beyond)


@st.composite
def selections(draw: Any, shape: tuple[int, ...], kind: str) -> Any:
    """What a user might write; now and then what none may write."""
    wrong = draw(st.integers(0, 9)) == 0
    beyond = 3 if wrong else 0
    axes: list[Any] = []
    for n in shape:
        whole = st.sampled_from([slice(None), slice(0, n)])
        choices = {
            "basic": [_slices(n), _positions(n, beyond), whole, _positions(n).map(np.int64)],
            "block": [st.integers(0, 1 if not wrong else 5), st.just(slice(None)), st.just(slice(0, 1)), st.just(-1)],
            "orthogonal": [
                _slices(n), _positions(n, beyond), whole,
                st.lists(_positions(n, beyond), min_size=1, max_size=6).map(np.array),
                st.lists(st.booleans(), min_size=n, max_size=n + wrong).map(np.array),
            ],
        }  # fmt: skip
        if kind in choices:
            axes.append(draw(st.one_of(choices[kind])))
    if kind == "coordinate":
        count = draw(st.integers(1, 6))
        axes = [np.array(draw(st.lists(_positions(n, beyond), min_size=count, max_size=count))) for n in shape]
        if count % 2 == 0 and draw(st.booleans()):
            axes = [axis.reshape(2, -1) for axis in axes]
    if kind == "mask":
        size = math.prod(shape)
        return np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(shape)
    if kind == "basic" and draw(st.integers(0, 3)) == 0:
        axes = [*axes[: len(axes) // 2], Ellipsis]
    return tuple(axes) if len(axes) != 1 or draw(st.booleans()) else axes[0]


# -- comparing -----------------------------------------------------------------------------------------------------------


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """What a call gives, or raises, in a form that can be compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call()
        except Exception as error:
            # zarr-python writes the chunks of a request concurrently: which of those that do not fit is named is a race.
            races = ("shape mismatch", "could not broadcast input array")
            message = next((race for race in races if str(error).startswith(race)), str(error))
            return ("raises", type(error), message)
    if result is None:
        return ("None",)
    array = np.asarray(result)
    flags = (array.flags.c_contiguous, array.flags.f_contiguous) if isinstance(result, np.ndarray) else ()
    return (
        type(result),
        array.dtype,
        array.shape,
        flags,
        array.tolist() if array.dtype.kind == "T" else array.tobytes(),
    )


def kept(z: Any) -> tuple[Any, ...]:
    """What is stored of an array: its elements as zarr-python reads them, and which of its chunks are there."""
    keys = asyncio.run(_keys(z.store)) if isinstance(z.store, LocalStore | MemoryStore) else ()
    return (outcome(lambda: z[...]), keys)


async def _keys(store: Any) -> tuple[str, ...]:
    return tuple(sorted({key async for key in store.list_prefix("deep/a") if "tessarr" not in key}))
