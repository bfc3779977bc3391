"""Print how long one element takes that was read before, from the cache of decoded chunks, and one that was not.

    python benchmarks/cached_reads.py

Of a chunk of 64³ `uint16` in zstd, and of an inner chunk of 32³, in a directory, in `MemoryStore` and in a ZIP archive, all in
memory where the machine has such a file system.
"""

from __future__ import annotations

import os
import tempfile
import timeit
from typing import Any

import numpy as np

import tessarr
from tessarr.storage import MemoryStore, ZipStore

SHAPE = (128,) * 3
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunk of 64³": {"chunks": (64,) * 3},
    "inner chunk of 32³": {"chunks": (32,) * 3, "shards": SHAPE},
}


def made(kind: str, folder: str, layout: dict[str, Any]) -> tessarr.Array:
    """Write an array, and open it for reading."""
    path = os.path.join(tempfile.mkdtemp(dir=folder), "array")
    store: str | MemoryStore | ZipStore = path
    if kind != "directory":
        store = MemoryStore() if kind == "memory" else ZipStore(path, mode="w")
    data = np.random.default_rng(1).integers(0, 4096, SHAPE, dtype="u2")
    tessarr.create_array(store, data=data, compressors="zstd", **layout)
    if isinstance(store, ZipStore):
        store.close()
        store = ZipStore(path, mode="r")
    return tessarr.open_array(store, mode="r")


def shortest_us(array: tessarr.Array, number: int, *, cached: bool) -> float:
    """Return the shortest time of reading one element, in microseconds."""

    def read() -> None:
        if not cached:
            tessarr.clear_chunk_cache()
        array[1, 2, 3]

    return 1e6 * min(timeit.repeat(read, number=number, repeat=9)) / number


def main() -> None:
    """Print a line for each place and layout."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for name, layout in LAYOUTS.items():
            for kind in ("directory", "memory", "archive"):
                array = made(kind, folder, layout)
                for _ in range(3):
                    array[1, 2, 3]
                again, first = shortest_us(array, 200, cached=True), shortest_us(array, 50, cached=False)
                print(f"{name} in {kind}: again {again:.1f} µs, not cached {first:.1f} µs")


if __name__ == "__main__":
    main()
