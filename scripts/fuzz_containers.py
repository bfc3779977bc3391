"""Fuzz containers that are read as Zarr: N5, and Neuroglancer precomputed volumes. A target of `fuzz_targets`."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
from fuzz_members import Member, Target, damage_packed, pack, unpack

import tessarr
from tessarr.storage import N5Store, PrecomputedStore
from tessarr.stores.memory.store import MemoryStore


def containers(look: Any) -> Target:
    """Fuzz documents, blocks and shards of both formats; `look` reads a part of a node."""
    return Target({"n5": _n5(look), "precomputed": _precomputed(look)}, {})


def _member(seeds: list[bytes], kind: Any, look: Any) -> Member:
    def run(data: bytes) -> None:
        group = tessarr.open_group(kind(MemoryStore({**unpack(data)})), mode="r")
        look(group)
        for _, node in group.members(max_depth=None):
            look(node)

    return Member(seeds, run, damage_packed)


def _values(store: MemoryStore) -> bytes:
    return pack({key: bytes(store.get(key) or b"") for key in store.list()})


def _n5(look: Any) -> Member:
    """A dataset of each compression, and images of three dialects."""
    seeds = []
    for compression in ("raw", "gzip", "bzip2", "xz", "lz4", "blosc", "zstd"):
        store = MemoryStore({"attributes.json": b'{"n5": "4.0.0"}'})
        given: dict[str, Any] = {"type": compression}
        if compression == "blosc":
            given |= {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0, "nthreads": 1}
        dataset: dict[str, Any] = {
            "dimensions": [5, 7],
            "blockSize": [3, 4],
            "dataType": "uint16",
            "compression": given,
        }
        store.set("a/attributes.json", json.dumps(dataset).encode())
        tessarr.open_array(N5Store(store), path="a", mode="r+")[...] = np.arange(35, dtype="u2").reshape(7, 5)
        seeds.append(_values(store))
    level = {"dimensions": [4, 4], "blockSize": [4, 4], "dataType": "uint8", "compression": {"type": "raw"}}
    transform = {"axes": ["y", "x"], "scale": [4.0, 2.0], "translate": [0.0, 1.0], "units": ["nm", "nm"]}
    scale = {"path": "s0", "transform": transform}
    images: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"multiscales": [{"datasets": [scale], "name": ""}]}, {"transform": transform}),
        ({"pixelResolution": {"dimensions": [4.0, 2.0], "unit": "nm"}, "scales": [[1, 1], [2, 2]]}, {}),
        ({"resolution": [4.0, 2.0], "units": ["nm", "nm"], "axes": ["x", "y"]}, {"downsamplingFactors": [1, 1]}),
    ]
    for group, member in images:
        documents: dict[str, dict[str, Any]] = {
            "attributes.json": group,
            "s0/attributes.json": level | member,
            "s1/attributes.json": level,
        }
        seeds.append(pack({key: json.dumps(document).encode() for key, document in documents.items()}))
    return _member(seeds, N5Store, look)


def _precomputed(look: Any) -> Member:
    """A volume with chunks in files, and volumes with chunks in a shard, plain and compressed."""
    size, chunk = [4, 4, 2], [2, 2, 2]
    plain = {f"s/{x}-{x + 2}_{y}-{y + 2}_0-2": bytes(range(8)) for x in (0, 2) for y in (0, 2)}
    seeds = [pack({"info": _info(size, chunk, None), **plain})]
    for hashed in ("identity", "murmurhash3_x86_128"):
        for encoding in ("raw", "gzip"):
            sharding = {
                "@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": 0, "minishard_bits": 0, "shard_bits": 0,
                "hash": hashed, "minishard_index_encoding": encoding, "data_encoding": encoding,
            }  # fmt: skip
            seeds.append(pack({"info": _info(size, chunk, sharding), "s/0.shard": _shard(encoding == "gzip")}))
    return _member(seeds, PrecomputedStore, look)


def _info(size: list[int], chunk: list[int], sharding: dict[str, Any] | None) -> bytes:
    scale: dict[str, Any] = {
        "key": "s",
        "size": size,
        "chunk_sizes": [chunk],
        "resolution": [8, 8, 40],
        "encoding": "raw",
    }
    scale |= {} if sharding is None else {"sharding": sharding}
    volume = {"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [scale]}
    return json.dumps({"@type": "neuroglancer_multiscale_volume", **volume}).encode()


def _shard(compressed: bool) -> bytes:
    """A shard of four chunks in one minishard: the place of its index, the chunks, and the index."""

    def stored(data: bytes) -> bytes:
        made = zlib.compressobj(1, zlib.DEFLATED, 31)
        return made.compress(data) + made.flush() if compressed else data

    chunks = [stored(bytes(range(number, number + 8))) for number in range(4)]
    gaps = [1 if number else 0 for number in range(4)]
    index = stored(struct.pack("<12Q", *gaps, 0, 0, 0, 0, *map(len, chunks)))
    body = b"".join(chunks)
    return struct.pack("<2Q", len(body), len(body) + len(index)) + body + index
