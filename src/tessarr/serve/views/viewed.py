"""Make the metadata of arrays of a view, and cast elements. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple, cast

import numpy as np

from tessarr.conventions.xarray import DIMENSIONS
from tessarr.core.array import Array
from tessarr.core.creation.metadata import new_array_metadata
from tessarr.errors import TessarrError, UnsupportedOperationError
from tessarr.grids.guess import guess_chunks
from tessarr.metadata.array import ArrayMetadata
from tessarr.serve.dynamic.budget import check_result
from tessarr.serve.dynamic.description import dimension_names, pyramids
from tessarr.serve.dynamic.refusal import Refusal
from tessarr.serve.views.options import CASTS, Options
from tessarr.tools.pyramid.describe import attributes_of
from tessarr.tools.pyramid.levels import Level, factors_of, plan
from tessarr.tools.pyramid.reduce import kind_of
from tessarr.types import JSON, AnyArray, AnyDType, JSONObject, Shape

_MIN_SIDE = 512
"""Levels are made up until no scaled axis is longer."""
_CUT_NBYTES = 4 << 20
"""Longer chunks are cut for the clients that `CASTS` names: they read a chunk for each small part of a picture."""
_AXES = ("t", "c", "z", "y", "x")
"""Names of the last axes of an image whose dimensions have none."""


class Viewed(NamedTuple):
    """One array of a view."""

    metadata: ArrayMetadata
    level: Level | None
    """What of the stored array it shows; ``None``: all elements."""


def viewed(stored: ArrayMetadata, options: Options, level: Level | None = None) -> Viewed:
    """Make the metadata of a stored array in a view, or of one of its levels.

    Raises `Refusal` for a type that cannot be cast, and for chunks that are too large.
    """
    shape = stored.shape if level is None else level.shape
    dtype = _dtype(stored, options)
    chunks = _chunks(stored, options, shape, dtype.itemsize if dtype is not None else stored.dtype.itemsize)
    check_result(prod(chunks) * max(1, stored.dtype.itemsize))
    attributes = {name: value for name, value in stored.attributes.items() if name != DIMENSIONS}
    fill = stored.fill_value
    try:
        metadata = new_array_metadata(
            shape=shape, dtype=stored.data_type if dtype is None else dtype, chunks=chunks,
            filters=None, compressors=list(options.codecs) or None, attributes=attributes,
            fill_value=_fill(fill, stored, dtype), dimension_names=_names(stored, level),
        )  # fmt: skip
    except (TessarrError, TypeError, ValueError) as error:
        what = error.what if isinstance(error, TessarrError) else str(error)
        raise Refusal(400, "view", f"the array cannot be shown so: {what}", "Leave the array as stored") from error
    return Viewed(metadata, level)


def levels_of(stored: ArrayMetadata, options: Options) -> list[Level]:
    """Plan the levels of an array, itself first; empty for an array that is shown as an array."""
    ndim = len(stored.shape)
    if options.levels is None or not 2 <= ndim <= len(_AXES) or stored.dtype.kind not in "biufV" or 0 in stored.shape:
        return []
    return plan(
        "0", stored.shape, factors_of(2, _level_names(stored), ndim), count=None, min_size=_MIN_SIDE, names=None
    )


def image_attributes(first: Array, levels: Sequence[Level], options: Options) -> JSONObject | None:
    """Describe levels as an image of OME-Zarr 0.5; ``None`` where the dimensions cannot be those of an image."""
    try:
        return attributes_of(
            {}, first, levels, "ome-0.5", options.levels or "nearest", name=first.path.rpartition("/")[0]
        )
    except (ValueError, UnsupportedOperationError):
        return None


def is_level(group: Mapping[str, JSON], name: str) -> bool:
    """Whether the attributes of a group name one of its arrays as a level of a pyramid already."""
    return any(isinstance(one, dict) and name in cast("list[JSON]", one["paths"]) for one in pyramids(group))


def converted(values: AnyArray, dtype: AnyDType) -> AnyArray:
    """Cast numbers. Raises `Refusal` where one of them is beyond the type: floats may be rounded, nothing else changes.

    >>> converted(np.array([1, 300]), np.dtype("uint16")).tolist()
    [1, 300]
    """
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        result = values.astype(dtype)
    if dtype.kind == "f":
        wide = values.astype(np.float64)
        is_lost = bool((np.isfinite(wide) & ~np.isfinite(result.astype(np.float64))).any())
    else:
        limits = np.iinfo(dtype)
        is_lost = bool(values.size) and not limits.min <= int(values.min()) <= int(values.max()) <= limits.max
    if is_lost:
        raise Refusal(500, "range", f"a value of this chunk is beyond {dtype}", "Choose another dtype of the view")
    return result


def _dtype(stored: ArrayMetadata, options: Options) -> AnyDType | None:
    """Return the type to cast to; ``None``: the stored type."""
    own = stored.data_type.name
    name = options.dtype or (CASTS[options.client].get(own) if options.client is not None else None)
    if name is None or name == own:
        return None
    dtype, kind = np.dtype(name), kind_of(stored.dtype)
    if kind not in "biuf" or (kind == "f" and dtype.kind != "f"):
        if options.dtype is None:
            return None
        raise Refusal(
            400, "view", f"{own} cannot be cast to {name}", "Integers become integers or floats, floats floats"
        )
    return dtype


def _fill(fill: object, stored: ArrayMetadata, dtype: AnyDType | None) -> object:
    """Cast the fill value; where the type cannot hold it, 0: chunks that hold it are errors, never 0."""
    if fill is None:
        return 0 if dtype is not None else stored.data_type.default_fill()
    if dtype is None:
        return fill
    try:
        return converted(np.asarray(fill, stored.dtype).reshape(1), dtype)[0]
    except Refusal:
        return 0


def _chunks(stored: ArrayMetadata, options: Options, shape: Shape, itemsize: int) -> Shape:
    size = max(1, itemsize)
    if isinstance(options.chunks, tuple) and len(options.chunks) == len(shape):
        return tuple(min(chunk, max(1, length)) for chunk, length in zip(options.chunks, shape, strict=True))
    if options.chunks == "auto":
        return tuple(max(1, chunk) for chunk in guess_chunks(shape, size))
    own = _stored_chunks(stored)
    if own is None:
        return tuple(max(1, chunk) for chunk in guess_chunks(shape, size))
    if options.client is not None and prod(own) * size > _CUT_NBYTES:
        return tuple(max(1, chunk) for chunk in guess_chunks(own, size))
    return own


def _stored_chunks(stored: ArrayMetadata) -> Shape | None:
    """Return the shape of chunks, of inner ones where there are shards; ``None`` where chunks differ."""
    first = stored.codecs[0] if len(stored.codecs) == 1 else None
    inner = getattr(first, "chunk_shape", None)
    return inner if inner is not None else stored.chunk_grid.chunk_shape


def _level_names(stored: ArrayMetadata) -> tuple[str | None, ...]:
    names = dimension_names(stored)
    return _AXES[len(_AXES) - len(names) :] if None in names else names


def _names(stored: ArrayMetadata, level: Level | None) -> Sequence[str | None] | None:
    names = _level_names(stored) if level is not None else dimension_names(stored)
    return None if all(name is None for name in names) else names
