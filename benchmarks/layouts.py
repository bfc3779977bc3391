"""Define the measured arrays: their shapes, chunks and codecs, at two scales."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

BENCH = Path(__file__).resolve().parent.parent / ".bench"
FULL = os.environ.get("BENCH_SCALE", "full") != "small"
SCALE = "full" if FULL else "small"
DATA = BENCH / "data" / SCALE
SCRATCH = Path(os.environ.get("BENCH_SCRATCH", BENCH / "scratch"))
MEMORY = Path(os.environ.get("BENCH_MEMORY", "/dev/shm/tessarr-bench"))
"""Where variants "in memory" write: a file system without a disk, whose write-back differs from run to run."""

SIDE = 512 if FULL else 128
SIDE_2D = 4096 if FULL else 1024
SIDE_1D = 1 << (24 if FULL else 20)
SHARD = 256 if FULL else 64
SHARD_2D = 1024 if FULL else 512
CALLS = 300 if FULL else 50


@dataclass(frozen=True, slots=True)
class Layout:
    """Describe how one array is stored."""

    name: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    """Shape of a chunk, or of an inner chunk where there are shards."""
    codec: str
    """raw, blosc (lz4, clevel 5, byte shuffle), zstd (level 3, no checksum) or gzip (level 1)."""
    shard: tuple[int, ...] | None = None
    dtype: str = "uint16"

    @property
    def path(self) -> str:
        """Return the path of the array."""
        return str(DATA / f"{self.name}.zarr")

    def truth(self) -> npt.NDArray[np.generic]:
        """Return the true values, memory-mapped from a file that no Zarr library wrote."""
        mapped: npt.NDArray[np.generic] = np.load(DATA / f"truth{len(self.shape)}d.npy", mmap_mode="r")
        return mapped

    @property
    def nbytes(self) -> int:
        """Return the bytes of the array in memory."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    @property
    def zarr_format(self) -> int:
        """Return 2 for the copies that zarr 2.18 reads, else 3."""
        return 2 if self.name.endswith("-v2") else 3

    def metadata(self) -> dict[str, object]:
        """Return the v3 document, for peers that need one."""
        inner = [{"name": "bytes", "configuration": {"endian": "little"}}, *codec_json(self.codec, self.dtype)]
        index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
        sharding = {"chunk_shape": list(self.chunk), "codecs": inner, "index_codecs": index, "index_location": "end"}
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.shard or self.chunk)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}] if self.shard else inner,
            "attributes": {},
        }


def codec_json(codec: str, dtype: str) -> list[dict[str, object]]:
    """Return the compressors of a layout, as in v3 documents."""
    size = np.dtype(dtype).itemsize
    blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": size, "blocksize": 0}
    known: dict[str, list[dict[str, object]]] = {
        "raw": [],
        "blosc": [{"name": "blosc", "configuration": blosc}],
        "zstd": [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
        "gzip": [{"name": "gzip", "configuration": {"level": 1}}],
    }
    return known[codec]


def _cube(name: str, chunk: int, codec: str, *, sharded: bool = False) -> Layout:
    shard = (SHARD,) * 3 if sharded else None
    return Layout(name, (SIDE,) * 3, (chunk,) * 3, codec, shard)


def _plane(name: str, *, sharded: bool = False) -> Layout:
    shard = (SHARD_2D,) * 2 if sharded else None
    return Layout(name, (SIDE_2D,) * 2, (256, 256), "zstd", shard, "float32")


def _line(name: str, *, sharded: bool = False) -> Layout:
    return Layout(name, (SIDE_1D,), (1 << 14,), "blosc", (1 << 18,) if sharded else None, "float32")


UNSHARDED = [
    _cube("raw64", 64, "raw"),
    _cube("blosc64", 64, "blosc"),
    _cube("zstd64", 64, "zstd"),
    _cube("gzip64", 64, "gzip"),
    _cube("raw32", 32, "raw"),
]
SHARDED = [
    _cube("shard-raw32", 32, "raw", sharded=True),
    _cube("shard-blosc32", 32, "blosc", sharded=True),
    _cube("shard-zstd32", 32, "zstd", sharded=True),
]
PLANES = [_plane("plane-zstd256"), _plane("plane-shard-zstd256", sharded=True)]
LINES = [_line("line-blosc"), _line("line-shard-blosc", sharded=True)]
V2 = [_cube(f"{layout.name}-v2", layout.chunk[0], layout.codec) for layout in UNSHARDED]
LAYOUTS = {layout.name: layout for layout in [*UNSHARDED, *SHARDED, *PLANES, *LINES, *V2]}
GRIDS = {f"grid-1e{3 * n}": 10**n for n in (1, 2, 3, 4)}
"""Name of an array of 4³ elements per chunk → chunks per axis; one chunk is stored."""
