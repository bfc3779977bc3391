"""zarr-python's ``zarr.core.metadata.v2``."""

from __future__ import annotations

from typing import Any

from tessarr.facade.zarr3.core.metadata import ArrayV2MetadataDict
from tessarr.metadata.public import ArrayV2Metadata


def parse_compressor(data: object) -> object:
    """Make a compressor of numcodecs from its configuration; return a compressor, or ``None``, unchanged."""
    from tessarr.registry import get_numcodec

    return get_numcodec(data) if isinstance(data, dict) else data


def parse_filters(data: Any) -> tuple[object, ...] | None:
    """Make filters of numcodecs from their configurations; ``None`` for an empty list."""
    return None if data is None else tuple(map(parse_compressor, data)) or None


__all__ = ["ArrayV2Metadata", "ArrayV2MetadataDict", "parse_compressor", "parse_filters"]
