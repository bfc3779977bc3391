"""Measure the limit that the page cache, memory and the codec's C library set, without any Zarr library.

Whole arrays. Raw: one parallel pass of pread into a reused buffer, then one memcpy of the output. Codecs: every
chunk is decoded by its C library into a reused buffer on all cores, then one memcpy. Writes likewise, backwards.
One chunk per call: open and pread, and the codec's library, on one thread, into a new array. The indexes of shards are kept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from layouts import LAYOUTS, Layout
from numcodecs import blosc, zstd

from peers.base import Peer

try:  # the fastest inflate that can be had here
    from isal import isal_zlib as zlib
except ImportError:
    import zlib

blosc.use_threads = False  # one chunk per core: several chunks at once, each on one thread
LOCAL = threading.local()


def scratch(nbytes: int, name: str) -> np.ndarray:
    """Return a buffer that each thread keeps."""
    buffer: np.ndarray | None = getattr(LOCAL, name, None)
    if buffer is None or buffer.nbytes < nbytes:
        buffer = np.empty(nbytes, dtype=np.uint8)
        setattr(LOCAL, name, buffer)
    return buffer


def decoder(codec: str, nbytes: int) -> Callable[[Any], None]:
    """Return a function that decodes one chunk and discards the result."""
    if codec == "blosc":
        return lambda data: blosc.decompress(data, scratch(nbytes, "chunk")[:nbytes])
    if codec == "zstd":
        return lambda data: zstd.decompress(data, scratch(nbytes, "chunk")[:nbytes])
    if codec == "gzip":
        return lambda data: zlib.decompress(data, 31, nbytes)
    return lambda _: None


def decode_into(codec: str, data: Any, out: np.ndarray) -> None:
    """Decode one chunk into an array, by the same library; gzip's returns bytes, which are copied."""
    if codec == "blosc":
        blosc.decompress(data, out)
    elif codec == "zstd":
        zstd.decompress(data, out)
    else:
        out.reshape(-1).view(np.uint8)[:] = np.frombuffer(zlib.decompress(data, 31, out.nbytes), np.uint8)


def read_into(descriptor: int, out: np.ndarray, offset: int) -> None:
    """Read bytes of a file into an array."""
    assert os.preadv(descriptor, [out.reshape(-1).view(np.uint8)], offset) == out.nbytes


def inner_chunks(data: np.ndarray, layout: Layout) -> list[np.ndarray]:
    """Return the encoded inner chunks of a shard by the index at its end; without shards the whole value."""
    if layout.shard is None:
        return [data]
    count = int(np.prod([s // c for s, c in zip(layout.shard, layout.chunk, strict=True)]))
    index = data[-(16 * count + 4) : -4].view("<u8").reshape(count, 2)
    return [data[offset : offset + length] for offset, length in index if offset != 2**64 - 1]


class Limit(Peer):
    """Read and decode every stored value; the returned array is a copy of the true values."""

    def __init__(self) -> None:
        self.cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.pool = ThreadPoolExecutor(self.cores)
        self.truth: dict[str, np.ndarray] = {}
        self.indexes: dict[str, np.ndarray] = {}

    def version(self) -> str:
        return f"the limit on {self.cores} cores"

    def open(self, path: str) -> Layout:
        return next(layout for layout in LAYOUTS.values() if layout.path == path)

    def read(self, array: Layout, selection: tuple[slice, ...]) -> np.ndarray:
        coords = [axis.start // length for axis, length in zip(selection, array.chunk, strict=True)]
        out = np.empty(array.chunk, array.dtype)
        inner = [a // b for a, b in zip(array.shard or array.chunk, array.chunk, strict=True)]
        descriptor = os.open(
            "/".join([array.path, "c", *(str(n // count) for n, count in zip(coords, inner, strict=True))]), os.O_RDONLY
        )
        try:
            offset, nbytes = 0, os.fstat(descriptor).st_size
            if array.shard is not None:
                offset, nbytes = self.index(descriptor, array, coords, inner)
            if array.codec == "raw":
                read_into(descriptor, out, offset)
            else:
                data = scratch(nbytes, "file")[:nbytes]
                read_into(descriptor, data, offset)
                decode_into(array.codec, data, out)
        finally:
            os.close(descriptor)
        return out

    def index(self, descriptor: int, layout: Layout, coords: list[int], inner: list[int]) -> tuple[int, int]:
        """Return where an inner chunk is in its shard."""
        key = f"{layout.name} {[n // count for n, count in zip(coords, inner, strict=True)]}"
        found = self.indexes.get(key)
        if found is None:
            found = self.indexes[key] = np.empty((*inner, 2), "<u8")
            read_into(descriptor, found, os.fstat(descriptor).st_size - found.nbytes - 4)
        offset, nbytes = found[tuple(n % count for n, count in zip(coords, inner, strict=True))]
        return int(offset), int(nbytes)

    def read_all(self, layout: Layout) -> np.ndarray:
        if layout.name not in self.truth:
            self.truth = {layout.name: np.array(layout.truth())}
        files = [path for path in Path(layout.path).rglob("*") if path.is_file() and path.name != "zarr.json"]
        chunk_nbytes = int(np.prod(layout.chunk)) * np.dtype(layout.dtype).itemsize
        decode = decoder(layout.codec, chunk_nbytes)

        def one(path: Path) -> None:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                size = os.fstat(descriptor).st_size
                buffer = scratch(size, "file")[:size]
                os.preadv(descriptor, [buffer], 0)
            finally:
                os.close(descriptor)
            for data in inner_chunks(buffer, layout):
                decode(data)

        list(self.pool.map(one, files))
        return self.truth[layout.name].copy()
