"""The engine that `array.engine` names serves every request on the array: none is finished by the other one.

`Served` records which engine works, for the duration of one request: the native engine's methods, and of the Python engine its
methods, its chunk reads and writes, and the chain with which it encodes and decodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tessarr
from tessarr.codecs.chain import BoundChain
from tessarr.engine.native.engine import NativeEngine
from tessarr.engine.reference import engine as reference
from tessarr.engine.reference.engine import ReferenceEngine
from tessarr.engine.reference.merge import ChunkWrites
from tessarr.errors import TessarrError
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.zip.store import ZipStore

from .far import FarStore

SHAPE = (12, 10)
STORES = ("local", "memory", "zip", "remote")


def v2(dtype: str, *filters: dict[str, Any], fill: Any = 0, compressors: Any = None) -> dict[str, Any]:
    """An array of version 2 in chunks of (4, 5)."""
    layout = {"zarr_format": 2, "chunks": (4, 5), "dtype": dtype, "fill_value": fill, "compressors": compressors}
    return {**layout, "filters": [*filters] or None}


def v3(dtype: str, *, fill: Any = 0, **codecs: Any) -> dict[str, Any]:
    """An array of version 3 in chunks of (2, 5)."""
    return {"chunks": (2, 5), "dtype": dtype, "fill_value": fill, **codecs}


def astype(decoded: str, encoded: str) -> dict[str, Any]:
    return {"id": "astype", "decode_dtype": decoded, "encode_dtype": encoded}


SHARDS = {"shards": (6, 10)}
NATIVE: dict[str, dict[str, Any]] = {
    "raw": v3("<f8", fill=np.nan, compressors=None),
    "zstd, crc32c": v3("<f8", fill=-0.0, compressors=["zstd", "crc32c"]),
    "transposed": v3("i4", filters=[{"name": "transpose", "configuration": {"order": [1, 0]}}]),
    "shards": v3("<f8", fill=np.nan, **SHARDS),
    "shards of raw chunks": v3("i2", compressors=None, **SHARDS),
    "shards with filters": v3("<f4", filters=[{"name": "bitround", "configuration": {"keepbits": 7}}], **SHARDS),
    "bits": v3("bool", fill=False, serializer={"name": "packbits"}),
    "blosc": v2(">f4", fill=np.nan, compressors={"id": "blosc"}),
    "delta": v2("<i4", {"id": "delta", "dtype": "<i4"}, compressors={"id": "zlib", "level": 1}),
    "quantize": v2("<f8", {"id": "quantize", "digits": 1, "dtype": "<f8"}),
    "astype of integers": v2("<i4", astype("<i4", "<i2")),
}
"""Layouts that the native engine serves."""
ONLY_NUMPY: dict[str, dict[str, Any]] = {
    "astype to integers": v2("<f8", astype("<f8", "<i2")),
    "astype from floats": v2("<i4", astype("<i4", "<f8")),
    "astype of floats": v2("<f4", astype("<f4", "<f8")),
    "fixedscaleoffset": v2(
        "<f8", {"id": "fixedscaleoffset", "scale": 10, "offset": 0, "dtype": "<f8", "astype": "<i2"}
    ),
}
"""Layouts in which the result of some values is NumPy's, which an engine in Rust can find out in the middle of a request."""
LAYOUTS = NATIVE | ONLY_NUMPY


def make_store(kind: str, tmp_path: Path) -> Store:
    if kind == "local":
        return LocalStore(tmp_path / "local")
    if kind == "zip":
        return ZipStore(tmp_path / "store.zip", mode="w")
    return MemoryStore() if kind == "memory" else FarStore()


def engines_calls() -> Iterator[tuple[str, Any, str]]:
    """The engine, the place and the name of every function that only this engine calls to move elements."""
    for engine in (NativeEngine, ReferenceEngine):
        for name, member in vars(engine).items():
            if isinstance(member, FunctionType) and name not in ("__init__", "supports", "element", "_bind"):
                yield engine.name, engine, name
    for place, names in ((BoundChain, ("encode", "decode", "decode_into")), (ChunkWrites, ("__init__",))):
        for name in names:
            yield "reference", place, name
    yield "reference", reference, "read_chunk"


class Served:
    """The engines that worked since the last request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._engines: set[str] = set()
        for engine, place, name in [*engines_calls()]:
            monkeypatch.setattr(place, name, self._recorded(engine, getattr(place, name)))

    def _recorded(self, engine: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any, **options: Any) -> Any:
            self._engines.add(engine)
            return function(*arguments, **options)

        return recorded

    def by(self, request: Callable[[], object]) -> set[str]:
        """The engines that serve `request`, whose error is of no interest."""
        self._engines = set()
        with suppress(TessarrError), np.errstate(invalid="ignore"):
            made = request()
            if asyncio.iscoroutine(made):
                asyncio.run(made)
        return self._engines


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    return Served(monkeypatch)


def values_of(dtype: Any) -> npt.NDArray[Any]:
    """The values that a cast, a scale or a comparison with the fill value may get wrong."""
    values = np.arange(120).reshape(SHAPE)
    if np.dtype(dtype).kind == "f":
        floats = values.astype(dtype)
        floats[0, :8] = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30, 0.3]
        return floats
    limits = np.iinfo(dtype) if np.dtype(dtype).kind == "i" else None
    values = values.astype(dtype)
    if limits is not None:
        values[0, :2] = limits.min, limits.max
    return values


def requests(array: Any) -> dict[str, Callable[[], object]]:
    """What users ask of an array: each moves elements, or ends in an error."""
    values = values_of(array.dtype)
    fill = np.full(SHAPE, array.fill_value, array.dtype)
    key = next(key for key in sorted(array.store.list()) if key[-1].isdigit())

    def stored(change: Callable[[bytes], bytes], request: Callable[[], object]) -> Callable[[], object]:
        """Make `request` when the first chunk has other bytes."""

        def call() -> object:
            array[...] = values
            tessarr.clear_chunk_cache()
            array.store.set(key, change(bytes(array.store.get(key))))
            return request()

        return call

    def foreign(old: bytes) -> bytes:
        """The bytes of floats that no integer holds, where elements are stored as they are."""
        return np.full(len(old) // 8, 1e300).tobytes() if len(old) % 8 == 0 else old

    return {
        "write everything": lambda: array.__setitem__(..., values),
        "read everything": lambda: array[...],
        "read a box": lambda: array[1:7, 3:9],
        "read with steps": lambda: array[::2, ::3],
        "read points": lambda: array.vindex[[0, 11, 5], [0, 9, 5]],
        "read rows": lambda: array.oindex[[1, 8], :],
        "read it later": lambda: array.read_async(...),
        "write a part": lambda: array.__setitem__((slice(1, 7), slice(3, 9)), values[1:7, 3:9]),
        "write a part later": lambda: array.write_async((slice(1, 7), slice(3, 9)), values[1:7, 3:9]),
        "write points": lambda: array.vindex.__setitem__(([0, 11], [0, 9]), values[0, :2]),
        "write the fill value to a part": lambda: array.__setitem__((slice(0, 3), slice(None)), fill[:3]),
        "write the fill value": lambda: array.__setitem__(..., fill),
        "read what is not stored": lambda: array[...],
        "write a part of what is not stored": lambda: array.__setitem__((0, slice(0, 7)), values[0, :7]),
        "read other numbers": stored(foreign, lambda: array[...]),
        "write a part of other numbers": stored(foreign, lambda: array.__setitem__((0, 0), values[0, 0])),
        "read a damaged chunk": stored(lambda old: old[: len(old) // 2], lambda: array[...]),
        "read it damaged, later": stored(lambda old: old[: len(old) // 2], lambda: array.read_async(...)),
        "write a part of a damaged chunk": stored(lambda old: old[:-1], lambda: array.__setitem__((0, 0), 1)),
        "write it damaged, later": stored(lambda old: b"x" + old, lambda: array.write_async((0, 0), 1)),
        "read an empty chunk": stored(lambda _: b"", lambda: array[0:2, 0:2]),
    }


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize(
    ("setting", "layout"), [*(("auto", layout) for layout in LAYOUTS), ("reference", "raw"), ("reference", "shards")]
)
def test_the_named_engine_alone_serves_every_request(
    setting: str, layout: str, kind: str, served: Served, tmp_path: Path
) -> None:
    with tessarr.config.set({"engine": setting}):
        array = tessarr.create_array(make_store(kind, tmp_path), shape=SHAPE, **LAYOUTS[layout])
        name, reason = array.engine.name, array.engine.reason
    assert name == ("native" if setting == "auto" and layout in NATIVE else "reference")
    with np.errstate(invalid="ignore"):
        array[...] = values_of(array.dtype)
    found = {what: served.by(request) for what, request in requests(array).items()}
    assert found == {what: {name} for what in found}
    assert (array.engine.name, array.engine.reason) == (name, reason)


@pytest.mark.parametrize("kind", STORES)
def test_single_elements_are_of_the_named_engine(kind: str, served: Served, tmp_path: Path) -> None:
    """They are read by a call of their own, or as a selection."""
    array = tessarr.create_array(make_store(kind, tmp_path), shape=SHAPE, **NATIVE["shards"])
    array[...] = values_of("<f8")
    key = next(key for key in sorted(array.store.list()) if key[-1].isdigit())
    assert served.by(lambda: array[3, 4]) <= {"native"}
    value = array.store.get(key)
    assert value is not None
    array.store.set(key, bytes(value)[:-7])
    tessarr.clear_chunk_cache()
    assert served.by(lambda: array[3, 4]) <= {"native"}
    with pytest.raises(TessarrError):
        array[3, 4]
