"""Parse the documents of a node for a user: warn of what is unusual, and cache the metadata of arrays.

To open an array again, or another of the same layout, is then a look-up by what its document says beside the user's
attributes. Only metadata without a diagnostic is cached, so that each reading of an unusual document warns. Nothing is
cached that rests on what other packages have registered, because that may change.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from tessarr import registry
from tessarr.common.strict_json import FloatLiteral
from tessarr.common.warn import report
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import is_strict
from tessarr.types import ZarrFormat

_MAX_ENTRIES = 512
"""The cache is emptied when it would exceed this size."""
_MAX_KEY_NBYTES = 4096
"""Large documents (of rectilinear grids) are not cached."""
_Key: TypeAlias = tuple[ZarrFormat, bool, bytes]
_cache: dict[_Key, ArrayMetadata] = {}


def parse_node(zarr_format: ZarrFormat, documents: Mapping[str, Any]) -> ArrayMetadata | GroupMetadata:
    """Parse the documents (relative key → JSON) of one node; a cache hit skips parsing.

    Warns of unusual documents. Raises `MetadataValidationError`.
    """
    keys = formats.KEYS[zarr_format]
    document: Any = documents.get(keys.array)
    attributes: Any
    if zarr_format == 3:
        is_array = type(document) is dict and document.get("node_type") == "array"
        attributes = document.get("attributes", {}) if is_array else None
    else:
        attributes = documents.get(keys.attributes or "", {})
    is_alone = keys.array == keys.group or keys.group not in documents
    key = _key(zarr_format, document) if is_alone and type(attributes) is dict else None
    if key is not None:
        found = _cache.get(key)
        if found is not None:
            return _own(found).with_attributes(dict(attributes))
    node, diagnostics = formats.parse_node(zarr_format, documents)
    if key is not None and not diagnostics and isinstance(node, ArrayMetadata) and _is_cacheable(node):
        if len(_cache) >= _MAX_ENTRIES:
            _cache.clear()
        _cache[key] = _own(node).with_attributes({})
    report(diagnostics)
    return node


def _is_cacheable(metadata: ArrayMetadata) -> bool:
    if metadata.zarr_format == 3 and (metadata.extra or metadata.storage_transformers or metadata.pending):
        return False
    return not any(codec.is_foreign for codec in metadata.codecs)


def _own(metadata: ArrayMetadata) -> ArrayMetadata:
    """Copy the mutable JSON objects of v1 and v2 metadata, so that no caller changes the cached ones."""
    if metadata.zarr_format == 3:
        return metadata
    compressor, filters, extra = deepcopy((metadata.compressor, metadata.filters, metadata.extra))
    return metadata.with_(compressor=compressor, filters=filters, extra=extra)


def _key(zarr_format: ZarrFormat, document: object) -> _Key | None:
    if not isinstance(document, Mapping) or registry.is_extended():
        return None
    rest = {
        # A float is keyed by its source text, as bytes: no document holds bytes, so that keys stay distinct.
        name: value.text.encode() if isinstance(value, FloatLiteral) else value
        for name, value in document.items()
        if name != "attributes" or zarr_format != 3
    }
    try:
        # marshal version 2 writes no back-references, so that equal documents give equal bytes.
        data = marshal.dumps(rest, 2)
    except ValueError:
        return None
    return (zarr_format, is_strict(), data) if len(data) <= _MAX_KEY_NBYTES else None


def parse_document(document: Mapping[str, Any], *, group: bool) -> ArrayMetadata | GroupMetadata:
    """Parse the metadata in one document, attributes included."""
    number: Any = document.get("zarr_format", 3)
    keys = formats.KEYS[number]
    if number == 3:
        return parse_node(3, {keys.array: document})
    rest = {name: value for name, value in document.items() if name not in ("attributes", "node_type")}
    name = ".zgroup" if group else keys.array
    return parse_node(number, {name: rest, keys.attributes or "": document.get("attributes") or {}})
