"""Zarr v1 documents: ``meta`` and ``attrs``, one array per store, no groups.

Source: "Zarr storage specification version 1". zarr 1.x also wrote, without a word in the text: the compression names
``blosc``, ``zlib`` (and ``gzip``, the same zlib stream), ``bz2``, ``lzma``, ``none`` or null, and bare ``NaN``
fill values. Writing v1 is deprecated; tessarr does it only on explicit request.
"""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.errors import MetadataValidationError
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.field import Document, Parsed, check_attributes
from tessarr.metadata.v2 import resolve_array
from tessarr.types import JSON, JSONObject

ARRAY_KEY = "meta"
ATTRIBUTES_KEY = "attrs"
_REQUIRED = ("zarr_format", "shape", "chunks", "dtype", "compression", "compression_opts", "fill_value", "order")
_LEVELLED = {"zlib": "zlib", "gzip": "zlib", "bz2": "bz2"}


def parse_array(documents: Mapping[str, object]) -> Parsed:
    """Parse ``meta`` and ``attrs`` (which may be missing, against the specification).

    Raises `MetadataValidationError` listing every problem.
    """
    doc = Document(documents[ARRAY_KEY], "v1 array metadata", ARRAY_KEY)
    doc.require(_REQUIRED)
    doc.format(1)
    compressor = compressor_from_v1(doc)
    attributes = check_attributes(documents.get(ATTRIBUTES_KEY, {}), ATTRIBUTES_KEY)
    extra = {name: value for name, value in doc.fields.items() if name not in _REQUIRED}
    return resolve_array(doc, 1, compressor=compressor, filters=None, attributes=attributes, extra=extra)


def compressor_from_v1(doc: Document) -> JSONObject | None:
    """Convert ``compression`` and ``compression_opts`` to a v2 compressor configuration (UPG-01)."""
    name = doc.fields.get("compression")
    options = doc.fields.get("compression_opts")
    if name in (None, "none"):
        return None
    if isinstance(name, str) and name in _LEVELLED:
        return {"id": _LEVELLED[name], **({"level": options} if isinstance(options, int) else {})}
    if name in ("blosc", "lzma"):
        if options is not None and not isinstance(options, Mapping):
            doc.add("compression_opts", "type", f"must be an object or null for {name}, got {options!r}")
            return None
        return {"id": name, **(options or {})}
    doc.add("compression", "unsupported", f"must be blosc, zlib, gzip, bz2, lzma, none or null; got {name!r}")
    return None


def compression_to_v1(compressor: JSON) -> tuple[JSON, JSON]:
    """Convert a v2 compressor configuration to ``(compression, compression_opts)``; raises for others than v1's."""
    if compressor is None:
        return "none", None
    assert isinstance(compressor, Mapping)
    options = {name: value for name, value in compressor.items() if name != "id"}
    if compressor["id"] in ("zlib", "bz2"):
        return compressor["id"], options.get("level", 1)
    if compressor["id"] == "blosc":
        return "blosc", {name: options[name] for name in ("cname", "clevel", "shuffle") if name in options}
    if compressor["id"] == "lzma":
        return "lzma", options
    raise MetadataValidationError(
        "Zarr v1 has no such compressor", expected="blosc, zlib, bz2, lzma or none", got=compressor["id"]
    )


def dump_array(array: ArrayMetadata) -> dict[str, JSONObject]:
    """Return ``meta`` and ``attrs``. Raises `MetadataValidationError` for what v1 cannot express."""
    if array.filters:
        raise MetadataValidationError("Zarr v1 has no filters", got=[f.get("id") for f in array.filters])
    compression, options = compression_to_v1(array.compressor)
    fill = None if array.fill_value is None else array.data_type.dump_fill(array.fill_value, 1)
    meta: JSONObject = {
        **array.extra,
        "zarr_format": 1,
        "shape": list(array.shape),
        "chunks": list(array.chunks),
        "dtype": array.data_type.to_v2(),
        "compression": compression,
        "compression_opts": options,
        "fill_value": fill,
        "order": array.order,
    }
    return {ARRAY_KEY: meta, ATTRIBUTES_KEY: array.attributes}


def dump_group(_: object) -> dict[str, JSONObject]:
    """Raise `MetadataValidationError`: v1 has no groups."""
    raise MetadataValidationError("Zarr v1 has no groups", hint="Use zarr_format=2 or 3")
