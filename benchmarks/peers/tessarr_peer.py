"""Measure tessarr as installed, with the reference engine forced, on a free-threaded Python, and at an earlier commit."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from layouts import Layout, codec_json

import tessarr
from peers.base import Peer


class Tessarr(Peer):
    """Measure the engine that tessarr chooses."""

    # Names are loaded on first use, so the import alone would cost next to nothing.
    statement: ClassVar[str] = "import tessarr; tessarr.open_array, tessarr.Array"

    def version(self) -> str:
        return f"tessarr {tessarr.__version__}"

    def forget(self) -> None:
        try:
            from tessarr import _native
        except ImportError:
            return
        _native.clear_cache()

    def open(self, path: str) -> Any:
        return tessarr.open_array(path, mode="r+")

    def open_url(self, url: str) -> Any:
        return tessarr.open_array(url, mode="r")

    def open_dataset(self, endpoint: str, bucket: str, *, consolidated: bool) -> Any:
        import xarray as xr

        options = {"endpoint": endpoint, "region": "us-east-1", "anon": True}
        return xr.open_dataset(f"s3://{bucket}", engine="tessarr", consolidated=consolidated, storage_options=options)

    def dask_array(self, path: str, chunks: tuple[int, ...]) -> Any:
        import tessarr.dask

        return tessarr.dask.from_array(self.open(path), chunks=chunks)

    def read(self, array: Any, selection: tuple[Any, ...]) -> np.ndarray:
        return np.asarray(array[selection])

    def outer(self, array: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(array.oindex[rows, columns])

    def points(self, array: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(array.vindex[rows, columns])

    def create(self, path: str, layout: Layout, *, durable: bool) -> Any:
        compressors = codec_json(layout.codec, layout.dtype) or None
        store = tessarr.storage.LocalStore(path, durable=True) if durable else path
        return tessarr.create_array(
            store, shape=layout.shape, chunks=layout.chunk, shards=layout.shard, dtype=layout.dtype,
            compressors=compressors, fill_value=0,
        )  # fmt: skip

    def write(self, array: Any, selection: tuple[Any, ...], value: np.ndarray) -> None:
        array[selection] = value

    def create_varying(self, kind: str, count: int, chunk: int) -> Any:
        dtype = {"text": "string", "bytes": "bytes"}[kind]
        return tessarr.create_array({}, shape=count, chunks=chunk, dtype=dtype, compressors=None)

    def create_together(self, path: str, layout: Layout, names: tuple[str, ...], *, durable: bool) -> Any:
        store = tessarr.storage.LocalStore(path, durable=durable)
        tessarr.create_group(store)
        for name in names:
            self.create(f"{path}/{name}", layout, durable=durable)[...] = 1
        return store

    def change_together(self, handle: Any, names: tuple[str, ...], value: np.ndarray) -> None:
        with tessarr.transaction(handle) as transaction:
            group: Any = transaction.group
            for name in names:
                group[name][...] = value

    def read_together(self, handle: Any, name: str) -> np.ndarray:
        return np.asarray(tessarr.open_array(handle, path=name)[...])

    def list_group(self, path: str) -> int:
        return len([name for name, _ in tessarr.open_group(path, mode="r").arrays()])


class TessarrReference(Tessarr):
    """Measure the reference engine, to show the gain of the native engine."""

    def __init__(self) -> None:
        os.environ["TESSARR_ENGINE"] = "reference"
        tessarr.config.set({"engine": "reference"})

    def version(self) -> str:
        return f"{super().version()}, reference engine"


class FreeTessarr(Tessarr):
    """Measure tessarr on a free-threaded Python, in a separate environment."""

    def version(self) -> str:
        gil = "with" if getattr(sys, "_is_gil_enabled", lambda: True)() else "without"
        return f"{super().version()} on Python {platform.python_version()}, {gil} a GIL"


class OldTessarr(Tessarr):
    """Measure tessarr at an earlier commit, installed in a separate environment."""

    def version(self) -> str:
        commit = (Path(sys.prefix) / ".commit").read_text(encoding="utf-8")
        return f"{super().version()} at {commit[:10]}"
