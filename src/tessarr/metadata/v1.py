"""Zarr v1 documents: ``meta`` and ``attrs``, one array per store, no groups.

Source: "Zarr storage specification version 1". zarr 1.x also wrote, without a word in the text: the compression names
``blosc``, ``zlib`` (and ``gzip``, the same zlib stream), ``bz2``, ``lzma``, ``none`` or null, and bare ``NaN``
fill values. Writing v1 is deprecated; tessarr does it only on explicit request.
"""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.metadata.field import Document, Parsed, check_attributes
from tessarr.metadata.v2 import resolve_array
from tessarr.types import JSONObject

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
