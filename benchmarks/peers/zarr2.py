"""Measure zarr 2.18, on v2 copies of the unsharded arrays."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import zarr
from layouts import Layout

from peers.base import NotSupportedError, Peer

if not zarr.__version__.startswith("2."):
    raise ImportError(f"zarr 2.18 is needed; this environment has {zarr.__version__}")


class Zarr2(Peer):
    """Wrap the last release of zarr-python 2."""

    statement: ClassVar[str] = "import zarr"
    suffix: ClassVar[str] = "-v2"

    def version(self) -> str:
        return f"zarr {zarr.__version__} (format 2)"

    def open(self, path: str) -> Any:
        return zarr.open_array(path, mode="r+")

    def read(self, array: Any, selection: tuple[Any, ...]) -> np.ndarray:
        return np.asarray(array[selection])

    def create(self, path: str, layout: Layout, *, durable: bool) -> Any:
        import numcodecs

        if durable or layout.shard:
            raise NotSupportedError("no fsync and no shards")
        codecs: dict[str, Any] = {
            "raw": None,
            "blosc": numcodecs.Blosc("lz4", 5, 1),
            "zstd": numcodecs.Zstd(3),
            "gzip": numcodecs.GZip(1),
        }
        return zarr.open_array(
            path, mode="w-", shape=layout.shape, chunks=layout.chunk, dtype=layout.dtype,
            compressor=codecs[layout.codec], fill_value=0,
        )  # fmt: skip

    def write(self, array: Any, selection: tuple[Any, ...], value: np.ndarray) -> None:
        array[selection] = value
