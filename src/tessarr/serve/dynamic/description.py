"""Describe a node for a viewer: what it is, its documents as stored, and its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from tessarr.conventions import layout, multiscales
from tessarr.conventions.ome import images
from tessarr.conventions.xarray import read_dimensions
from tessarr.core.array import Array
from tessarr.core.stored.walk import walk
from tessarr.errors import TessarrError
from tessarr.metadata.array import ArrayMetadata
from tessarr.serve.dynamic import exports
from tessarr.serve.dynamic.decoded import packing_of, time_units
from tessarr.serve.dynamic.exports import json_of
from tessarr.stores.base import Store
from tessarr.tools.check import check
from tessarr.types import JSON, Buffer, JSONObject

_MAX_DOCUMENT = 1 << 20
"""Bytes of a document that are shown."""
MAX_CHECKED = 2000
"""Nodes whose documents one response checks."""


def dimension_names(metadata: ArrayMetadata) -> tuple[str | None, ...]:
    """Return the name of each dimension, ``None`` where it has none: of the document, of xarray, or (of a level of an image)
    none.
    """
    names = read_dimensions(metadata.attributes, len(metadata.shape), metadata.dimension_names)
    return tuple(name or None for name in names) if names is not None else (None,) * len(metadata.shape)


def texts(documents: Mapping[str, Buffer]) -> JSONObject:
    """Return documents as text, as they are stored."""
    return {name: bytes(value)[:_MAX_DOCUMENT].decode("utf-8", "replace") for name, value in documents.items()}


def brief(metadata: ArrayMetadata) -> JSONObject:
    """Describe an array in a list of members: type, shape and dimensions."""
    return {
        "dtype": metadata.data_type.name,
        "shape": list(metadata.shape),
        "dimensions": list(dimension_names(metadata)),
    }


def of_array(array: Array, names: Sequence[str | None]) -> JSONObject:
    """Describe an array."""
    missing = array._metadata.data_type.may_be_missing
    dtype = np.dtype(np.object_) if missing else array.dtype
    packing, times = packing_of(array), time_units(array)
    has_meaning = packing is not None and (packing.packed or packing.missing or packing.unsigned is not None)
    grid: JSON
    try:
        grid = {"chunks": list(array.chunks), "shards": None if array.shards is None else list(array.shards)}
    except NotImplementedError:  # chunks differ
        grid = {"chunks": None, "shards": None}
    attributes = array._metadata.attributes
    return {
        "kind": "array",
        "zarr_format": array.zarr_format,
        "shape": list(array.shape),
        "dimensions": list(names),
        "dtype": array._metadata.data_type.name,
        "numpy": exports.numpy_name(dtype) if dtype.names is None else "struct",
        "itemsize": dtype.itemsize,
        "fields": None if dtype.names is None else list(dtype.names),
        "is_raw": not dtype.hasobject and dtype.kind not in "OT",
        "grid": grid,
        "nchunks": list(array.cdata_shape),
        "codecs": [codec.name for codec in array._metadata.codecs],
        "stages": [str(getattr(stage, "name", stage)) for stage in array._stages],
        "fill_value": _shown(array.fill_value),
        "nbytes": array.nbytes,
        "engine": str(array.engine),
        "units": _text(attributes.get("units")),
        "label": _text(attributes.get("long_name")) or _text(attributes.get("standard_name")),
        "time": None if times is None else {"units": times[0], "calendar": times[1]},
        "packing": None if packing is None or not has_meaning else {
            "scale": json_of(packing.scale),
            "offset": json_of(packing.offset),
            "missing": [json_of(value) for value in packing.missing],
        },
    }  # fmt: skip


def pyramids(attributes: Mapping[str, JSON]) -> list[JSON]:
    """Return the pyramids that a group describes: paths of levels, the names of axes, and units."""
    found: list[JSON] = []
    try:
        for image in images.read(attributes):
            axes: JSON = [{"name": axis.name, "type": axis.type, "unit": axis.unit} for axis in image.axes]
            found.append({
                "name": image.name, "paths": [level.path for level in image.levels], "axes": axes,
                "scales": [None if level.scale is None else list(level.scale) for level in image.levels],
            })  # fmt: skip
        if not found:
            found += [
                {"name": one.name, "paths": list(one.paths), "axes": [], "scales": []}
                for one in multiscales.read(attributes)
            ]
        if not found:
            assets: list[JSON] = [level.asset for level in layout.read(attributes)]
            found += [{"name": None, "paths": assets, "axes": [], "scales": []}] if assets else []
    except (TessarrError, ValueError, TypeError, KeyError, AttributeError):
        return []  # attributes of other writers, however malformed, do not keep data from being shown
    return found


def findings(store: Store, path: str) -> list[JSON] | None:
    """Check the documents of a node and of all below it, without their chunks; ``None``: there are too many nodes.

    Paths are from the root of the store.
    """
    if sum(1 for _ in islice(walk(store, path), MAX_CHECKED + 1)) > MAX_CHECKED:
        return None
    return [
        {
            "rule": one.rule, "severity": one.severity, "message": one.message, "path": one.path,
            "repair": None if one.action is None else str(one.action),
        }
        for one in check(store, path=path).findings
    ]  # fmt: skip


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _shown(value: object) -> JSON:
    return None if value is None else str(value)
