"""zarr-python's ``zarr.core.metadata.v3``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tessarr.codecs.parse import codec_from
from tessarr.facade.zarr3.core.chunk_grids import RegularChunkGrid, RegularChunkGridMetadata
from tessarr.facade.zarr3.core.common import parse_shapelike
from tessarr.facade.zarr3.core.metadata import ArrayMetadataJSON_V3
from tessarr.metadata.public import ArrayV3Metadata

ARRAY_METADATA_KEYS = {
    "attributes", "chunk_grid", "chunk_key_encoding", "codecs", "data_type", "dimension_names", "fill_value", "node_type",
    "shape", "storage_transformers", "zarr_format",
}  # fmt: skip


def parse_dimension_names(data: object) -> tuple[str | None, ...] | None:
    """Parse dimension names into a tuple; return ``None`` unchanged."""
    if data is None:
        return None
    if isinstance(data, Iterable) and all(item is None or isinstance(item, str) for item in data):
        return tuple(data)
    raise TypeError(f"Expected either None or an iterable of str, got {type(data)}")


def parse_codecs(data: Iterable[object]) -> tuple[Any, ...]:
    """Parse codecs, given as codecs or as JSON."""
    return tuple(codec_from(item) for item in data)


__all__ = [
    "ARRAY_METADATA_KEYS",
    "ArrayMetadataJSON_V3",
    "ArrayV3Metadata",
    "RegularChunkGrid",
    "RegularChunkGridMetadata",
    "parse_codecs",
    "parse_dimension_names",
    "parse_shapelike",
]
