"""zarr-python's ``zarr.core.chunk_key_encodings``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tessarr.keys.base import ChunkKeyEncoding
from tessarr.keys.default import DefaultKeyEncoding as DefaultChunkKeyEncoding
from tessarr.keys.v2 import V2KeyEncoding as V2ChunkKeyEncoding

ChunkKeyEncodingParams: TypeAlias = dict[str, object]
ChunkKeyEncodingLike: TypeAlias = ChunkKeyEncoding | Mapping[str, object]


def parse_chunk_key_encoding(data: ChunkKeyEncodingLike) -> ChunkKeyEncoding:
    """Parse a chunk key encoding, given as an object, as JSON, or as ``{"name": …, "separator": …}``."""
    if isinstance(data, ChunkKeyEncoding):
        return data
    from tessarr import registry

    configuration = data.get("configuration") or {key: value for key, value in data.items() if key != "name"}
    found: ChunkKeyEncoding = registry.get_chunk_key_encoding_class(str(data["name"])).from_json(configuration)
    return found


__all__ = [
    "ChunkKeyEncoding",
    "ChunkKeyEncodingLike",
    "ChunkKeyEncodingParams",
    "DefaultChunkKeyEncoding",
    "V2ChunkKeyEncoding",
    "parse_chunk_key_encoding",
]
