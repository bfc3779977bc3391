"""Take the keywords of `create` from an array-like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessarr.core.array import Array
from tessarr.core.creation.metadata import array_like
from tessarr.dtypes.parse import DTypeLike
from tessarr.types import AnyArray


def chunks_of(a: Array) -> Any:
    """Return the keyword `chunks` for a new array with the chunk grid of `a`."""
    return a.chunks if a._metadata.chunk_grid.chunk_shape is not None else a._metadata.chunk_grid


def type_of(source: Array | AnyArray) -> DTypeLike:
    """Return the data type for a new array like `source`: that of an array whose elements may be missing, else the dtype."""
    if isinstance(source, Array) and source._metadata.data_type.may_be_missing:
        return source._metadata.data_type
    return source.dtype


def like(a: object, zarr_format: int | None, given: Mapping[str, object]) -> dict[str, Any]:
    """Take keywords of `create` from an array-like, unless given. Codecs are taken within one format only."""
    source = array_like(a)
    taken: dict[str, object] = {"shape": source.shape, "dtype": type_of(source), "zarr_format": zarr_format}
    if isinstance(source, Array):
        number = zarr_format or source.zarr_format
        taken |= {"chunks": chunks_of(source), "fill_value": source.fill_value, "zarr_format": number}
        if number == source.zarr_format == 3:
            taken |= {"compressors": source.compressors, "filters": source.filters or "auto"}
            if source._sharding:
                grid = source._metadata.chunk_grid
                taken |= {"chunks": source.chunks, "shards": grid.chunk_shape or grid}
        elif number == source.zarr_format:
            taken |= {
                "order": source._metadata.order,
                "compressor": next(iter(source.compressors), None),
                "filters": source.filters or None,
            }
    return {**taken, **given}
