"""Measure the limit that the file system, memory and the codec's C library set, without any Zarr library.

Whole arrays, on all cores. Raw: one pread of each file into a reused buffer, then one memcpy of the output. Codecs: every
chunk is decoded by its C library into a reused buffer, then one memcpy. Writes: every chunk is copied to a reused buffer,
encoded by the library, and written to a new file.
Steps, crosses and points: each (inner) chunk that is touched is read and decoded once, on all cores, and the elements are then
taken from memory.
One chunk per call, on one thread: open and pread, and the codec's library, into a new array. One element: of a raw chunk
its bytes are read, of a blosc chunk one block. An update reads the chunk, and writes a file that it renames over the old one.
Text and bytes of varying length: numcodecs' codec alone, on one thread, between objects and buffers.
The indexes of shards are kept. Calls of Python are part of the limit: of many small chunks, they are most of it.
"""

from __future__ import annotations

import itertools
import json
import os
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
from layouts import LAYOUTS, Layout
from numcodecs import blosc, zstd
from numcodecs.vlen import VLenBytes, VLenUTF8

from peers.base import Peer

try:  # the fastest inflate that can be had here
    from isal import isal_zlib as zlib
except ImportError:
    import zlib

blosc.use_threads = False  # one chunk per core: several chunks at once, each on one thread
LOCAL = threading.local()
Coords = tuple[int, ...]


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


def encode(codec: str, chunk: np.ndarray) -> Any:
    """Encode one contiguous chunk by its library."""
    if codec == "blosc":
        return blosc.compress(chunk, b"lz4", 5, blosc.SHUFFLE)
    if codec == "zstd":
        return zstd.compress(chunk, 3)
    if codec == "gzip":
        return zlib.compress(chunk, 1, 31)
    return chunk.reshape(-1).view(np.uint8)


def read_into(descriptor: int, out: np.ndarray, offset: int) -> None:
    """Read bytes of a file into an array."""
    assert os.preadv(descriptor, [out.reshape(-1).view(np.uint8)], offset) == out.nbytes


def read_block(descriptor: int, offset: int, nbytes: int, position: int) -> tuple[np.ndarray, int]:
    """Decode the block of a blosc frame that holds the byte `position`; return it and the position in it."""
    head = os.pread(descriptor, min(nbytes, 4096), offset)
    size, blocksize, _ = struct.unpack_from("<III", head, 4)
    starts = struct.unpack_from(f"<{-(-size // blocksize)}I", head, 16)
    start, data = starts[position // blocksize], scratch(nbytes, "file")
    if size % blocksize:
        read_into(descriptor, data[:nbytes], offset)
        return np.frombuffer(blosc.decompress(data[:nbytes]), np.uint8), position
    length = min((other for other in starts if other > start), default=nbytes) - start
    # The block alone, as a frame of one block.
    data[:20] = np.frombuffer(head[:4] + struct.pack("<IIII", blocksize, blocksize, 20 + length, 20), np.uint8)
    read_into(descriptor, data[20 : 20 + length], offset + start)
    return np.frombuffer(blosc.decompress(data[: 20 + length]), np.uint8), position % blocksize


def write_file(path: str, parts: Sequence[Any], *, durable: bool) -> None:
    """Write a new file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        assert os.pwritev(descriptor, parts, 0) == sum(memoryview(part).nbytes for part in parts)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def inner_chunks(data: np.ndarray, layout: Layout) -> list[np.ndarray]:
    """Return the encoded inner chunks of a shard by the index at its end; without shards the whole value."""
    if layout.shard is None:
        return [data]
    count = int(np.prod(inner_grid(layout)))
    index = data[-(16 * count + 4) : -4].view("<u8").reshape(count, 2)
    return [data[offset : offset + length] for offset, length in index if offset != 2**64 - 1]


def inner_grid(layout: Layout) -> Coords:
    """Return how many inner chunks a stored value has along each axis."""
    return tuple(a // b for a, b in zip(layout.shard or layout.chunk, layout.chunk, strict=True))


def boxes(shape: Coords, chunk: Coords) -> list[tuple[Coords, tuple[slice, ...]]]:
    """Return the coords and the box of each chunk of a grid."""
    grid = [range(n // c) for n, c in zip(shape, chunk, strict=True)]
    return [
        (coords, tuple(slice(i * c, (i + 1) * c) for i, c in zip(coords, chunk, strict=True)))
        for coords in itertools.product(*grid)
    ]


def index_bytes(index: np.ndarray) -> bytes:
    """Encode the index of a shard."""
    data = index.tobytes()
    return data + struct.pack("<I", google_crc32c.value(data))


class Place(NamedTuple):
    """An array of a known layout in a folder."""

    layout: Layout
    path: str
    durable: bool = False

    def file(self, coords: Sequence[int]) -> str:
        """Return the file of a stored value."""
        return "/".join([self.path, "c", *map(str, coords)])


class Varying(NamedTuple):
    """Chunks of elements of varying length, in memory."""

    codec: Any
    chunk: int
    """Elements of each."""
    stored: list[Any]

    def read(self) -> np.ndarray:
        """Decode all chunks."""
        out = np.empty(self.chunk * len(self.stored), object)
        for number, data in enumerate(self.stored):
            self.codec.decode(data, out[number * self.chunk : (number + 1) * self.chunk])
        return out

    def write(self, value: np.ndarray) -> None:
        """Encode all chunks."""
        starts = range(0, len(value), self.chunk)
        self.stored[:] = [self.codec.encode(value[start : start + self.chunk]) for start in starts]


class Limit(Peer):
    """Read and decode every stored value; the returned whole array is a copy of the true values, unless it was written here."""

    def __init__(self) -> None:
        self.cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.pool = ThreadPoolExecutor(self.cores)
        self.truth: dict[str, np.ndarray] = {}
        self.indexes: dict[str, np.ndarray] = {}

    def version(self) -> str:
        return f"the limit on {self.cores} cores"

    def open(self, path: str) -> Place:
        document = json.loads((Path(path) / "zarr.json").read_text())
        return Place(next(layout for layout in LAYOUTS.values() if layout.metadata() == document), path)

    def create_varying(self, kind: str, count: int, chunk: int) -> Varying:
        return Varying(VLenUTF8() if kind == "text" else VLenBytes(), chunk, [])

    def read(self, array: Place | Varying, selection: tuple[Any, ...]) -> np.ndarray:
        if isinstance(array, Varying):
            return array.read()
        layout = array.layout
        if isinstance(selection[0], int):
            return self.element(array, selection)
        if selection[0].step is not None:
            rows, columns = (np.arange(n)[part] for n, part in zip(layout.shape, selection, strict=True))
            return self.outer(array, rows, columns)
        if selection[0] == slice(None):
            whole = np.empty(layout.shape, layout.dtype)
            for _, box in boxes(layout.shape, layout.chunk):
                whole[box] = self.read(array, box)
            return whole
        coords = [axis.start // length for axis, length in zip(selection, layout.chunk, strict=True)]
        out = np.empty(layout.chunk, layout.dtype)
        descriptor, offset, nbytes = self.find(array, coords)
        try:
            if layout.codec == "raw":
                read_into(descriptor, out, offset)
            else:
                data = scratch(nbytes, "file")[:nbytes]
                read_into(descriptor, data, offset)
                decode_into(layout.codec, data, out)
        finally:
            os.close(descriptor)
        return out

    def element(self, array: Place, index: tuple[int, ...]) -> np.ndarray:
        """Read one element of a raw or blosc chunk."""
        layout = array.layout
        item = np.dtype(layout.dtype)
        coords = [at // length for at, length in zip(index, layout.chunk, strict=True)]
        within = tuple(at % length for at, length in zip(index, layout.chunk, strict=True))
        position = int(np.ravel_multi_index(within, layout.chunk)) * item.itemsize
        descriptor, offset, nbytes = self.find(array, coords)
        try:
            if layout.codec == "raw":
                return np.frombuffer(os.pread(descriptor, item.itemsize, offset + position), item)
            block, at = read_block(descriptor, offset, nbytes, position)
            return block[at : at + item.itemsize].view(item)
        finally:
            os.close(descriptor)

    def find(self, array: Place, coords: Sequence[int]) -> tuple[int, int, int]:
        """Open the file of an (inner) chunk; return its descriptor, and offset and size of the chunk in it."""
        inner = inner_grid(array.layout)
        descriptor = os.open(array.file([n // count for n, count in zip(coords, inner, strict=True)]), os.O_RDONLY)
        if array.layout.shard is None:
            return descriptor, 0, os.fstat(descriptor).st_size
        offset, nbytes = self.index(descriptor, array, coords)[tuple(n % m for n, m in zip(coords, inner, strict=True))]
        return descriptor, int(offset), int(nbytes)

    def index(self, descriptor: int, array: Place, coords: Sequence[int]) -> np.ndarray:
        """Return the index of the shard that holds an inner chunk."""
        inner = inner_grid(array.layout)
        key = array.file([n // count for n, count in zip(coords, inner, strict=True)])
        found = self.indexes.get(key)
        if found is None:
            found = self.indexes[key] = np.empty((*inner, 2), "<u8")
            read_into(descriptor, found, os.fstat(descriptor).st_size - found.nbytes - 4)
        return found

    def read_all(self, layout: Layout) -> np.ndarray:
        truth = self.true_values(layout)
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
        return truth.copy()

    def outer(self, array: Place, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        touched = (np.unique(axis // n) for axis, n in zip((rows, columns), array.layout.chunk, strict=True))
        self.decode(array, itertools.product(*touched))
        values: np.ndarray = self.true_values(array.layout)[np.ix_(rows, columns)]
        return values

    def points(self, array: Place, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        touched = np.stack([axis // n for axis, n in zip((rows, columns), array.layout.chunk, strict=True)], axis=1)
        self.decode(array, np.unique(touched, axis=0))
        values: np.ndarray = self.true_values(array.layout)[rows, columns]
        return values

    def decode(self, array: Place, touched: Iterable[Sequence[int]]) -> None:
        """Read and decode (inner) chunks, each once, on all cores."""
        layout = array.layout
        decode = decoder(layout.codec, int(np.prod(layout.chunk)) * np.dtype(layout.dtype).itemsize)

        def one(coords: Sequence[int]) -> None:
            descriptor, offset, nbytes = self.find(array, coords)
            try:
                data = scratch(nbytes, "file")[:nbytes]
                read_into(descriptor, data, offset)
            finally:
                os.close(descriptor)
            decode(data)

        list(self.pool.map(one, touched))

    def true_values(self, layout: Layout) -> np.ndarray:
        """Return the true values in memory."""
        if layout.name not in self.truth:
            self.truth = {layout.name: np.array(layout.truth())}
        return self.truth[layout.name]

    def create(self, path: str, layout: Layout, *, durable: bool) -> Place:
        Path(path).mkdir(parents=True)
        (Path(path) / "zarr.json").write_text(json.dumps(layout.metadata()))
        return Place(layout, path, durable)

    def write(self, array: Place | Varying, selection: tuple[Any, ...], value: np.ndarray) -> None:
        if isinstance(array, Varying):
            array.write(value)
            return
        layout = array.layout
        if selection[0] != slice(None):
            self.update(array, selection, value)
            return
        stored = boxes(layout.shape, layout.shard or layout.chunk)
        for folder in sorted({os.path.dirname(array.file(coords)) for coords, _ in stored}):
            os.makedirs(folder, exist_ok=True)

        def one(stored: tuple[Coords, tuple[slice, ...]]) -> None:
            coords, box = stored
            write_file(array.file(coords), encoded(layout, value[box]), durable=array.durable)

        list(self.pool.map(one, stored))

    def update(self, array: Place, box: tuple[slice, ...], value: np.ndarray) -> None:
        """Write a box within one (inner) chunk, by a file that replaces the old one."""
        layout = array.layout
        coords = [axis.start // length for axis, length in zip(box, layout.chunk, strict=True)]
        chunk = self.read(array, box)
        chunk[tuple(slice(a.start % n, (a.stop - 1) % n + 1) for a, n in zip(box, layout.chunk, strict=True))] = value
        data, inner = encode(layout.codec, chunk), inner_grid(layout)
        path = array.file([n // count for n, count in zip(coords, inner, strict=True)])
        temporary = f"{path}.tmp"
        if layout.shard is None:
            write_file(temporary, [data], durable=False)
        else:
            self.append(array, coords, path, temporary, data)
        os.rename(temporary, path)

    def append(self, array: Place, coords: Sequence[int], path: str, temporary: str, data: Any) -> None:
        """Copy a shard, but for its index, and append an inner chunk and the new index."""
        source = os.open(path, os.O_RDONLY)
        target = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            index = self.index(source, array, coords)
            end = os.fstat(source).st_size - index.nbytes - 4
            index[tuple(n % m for n, m in zip(coords, inner_grid(array.layout), strict=True))] = (end, len(data))
            copied = 0
            while copied < end:
                copied += os.sendfile(target, source, copied, end - copied)
            os.pwritev(target, [data, index_bytes(index)], end)
        finally:
            os.close(source)
            os.close(target)


def encoded(layout: Layout, value: np.ndarray) -> list[Any]:
    """Encode a stored value: a chunk, or the inner chunks of a shard and their index."""
    inner = boxes(value.shape, layout.chunk)
    nbytes = len(inner) and value.nbytes // len(inner)
    chunk = scratch(nbytes, "chunk")[:nbytes].view(layout.dtype).reshape(layout.chunk)
    index, end, parts = np.empty((*inner_grid(layout), 2), "<u8"), 0, []
    for coords, box in inner:
        np.copyto(chunk, value[box])
        data = encode(layout.codec, chunk)
        if layout.shard is not None and layout.codec == "raw":
            data = data.copy()  # the buffer is used again
        index[coords] = (end, len(data))
        end += len(data)
        parts.append(data)
    return parts if layout.shard is None else [*parts, index_bytes(index)]
