"""Parse the documents of a node for a user: warn of what is unusual, and cache the metadata of arrays.

There are two caches. One is keyed by the stored bytes of an array's documents: to open the array again, or another with
equal documents, costs no parsing of JSON. The other is keyed by what the document says beside the user's attributes: arrays
of one layout share their data type, grid and codecs. Only metadata without a diagnostic is cached, so that each reading of
an unusual document warns. Nothing is cached that rests on what other packages have registered, because that may change.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tessarr import registry
from tessarr.common.strict_json import FloatLiteral
from tessarr.common.warn import report
from tessarr.errors import MetadataValidationError, Problem
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import config, is_strict
from tessarr.stores.path import check_stored_name, join
from tessarr.types import ZarrFormat

if TYPE_CHECKING:
    from tessarr.core.stored.walk import Entry
    from tessarr.stores.base import Store

K = TypeVar("K")
V = TypeVar("V")
_MAX_ENTRIES = 512
"""A cache is emptied when it would exceed this size."""
_MAX_KEY_NBYTES = 4096
"""Large documents (of rectilinear grids) are not cached."""
_Settings: TypeAlias = tuple[bool, bool]
_Key: TypeAlias = tuple[ZarrFormat, _Settings, bytes]
_cache: dict[_Key, ArrayMetadata] = {}
_Stored: TypeAlias = tuple[ZarrFormat, _Settings, tuple[bytes | None, ...]]
_stored: dict[_Stored, tuple[ArrayMetadata, bytes]] = {}
"""Stored documents of an array → its metadata without attributes, and the attributes, marshalled: each array has its own."""
_known_settings: tuple[int, _Settings] | None = None
"""The number of changes of the settings (`Config.changes`), and the settings that decide how a document was read then."""


def parse_entry(entry: Entry, zarr_format: ZarrFormat, store: Store | None = None) -> ArrayMetadata | GroupMetadata:
    """Parse the stored documents of one format of a node; a cache hit skips the JSON as well.

    Warns of unusual documents, some with the name of the node in `store`, and of reserved names. Raises
    `MetadataValidationError`.
    """
    if zarr_format == 3 and "__" in entry.path:
        check_stored_name(entry.path)
    key = _stored_key(entry, zarr_format)
    if key is not None and (found := _stored.get(key)) is not None:
        metadata, attributes = found
        return _private_copy(metadata).with_attributes(marshal.loads(attributes))
    node, is_cached = _parse(zarr_format, entry.documents(zarr_format), store, entry.path)
    if key is not None and is_cached and isinstance(node, ArrayMetadata):
        try:
            attributes = marshal.dumps(node.attributes, 2)
        except ValueError:  # a float that keeps its text
            return node
        _insert(_stored, key, (_private_copy(node).with_attributes({}), attributes))
    return node


def parse_node(
    zarr_format: ZarrFormat, documents: Mapping[str, object], store: Store | None = None, path: str = ""
) -> ArrayMetadata | GroupMetadata:
    """Parse the documents (relative key → JSON) of one node; a cache hit skips the interpretation.

    Warns of unusual documents, some with the name of the node, which is at `path` of `store`, and of reserved names.
    Raises `MetadataValidationError`.
    """
    if zarr_format == 3 and "__" in path:
        check_stored_name(path)
    return _parse(zarr_format, documents, store, path)[0]


def _parse(
    zarr_format: ZarrFormat, documents: Mapping[str, Any], store: Store | None, path: str
) -> tuple[ArrayMetadata | GroupMetadata, bool]:
    """Parse the documents of one node, and say whether its metadata is cached."""
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
            return _private_copy(found).with_attributes(dict(attributes)), True
    node, diagnostics = formats.parse_node(zarr_format, documents)
    if diagnostics:
        report(diagnostics, join("" if store is None else store.url, path))
    if key is None or diagnostics or not isinstance(node, ArrayMetadata) or not _is_cacheable(node):
        return node, False
    _insert(_cache, key, _private_copy(node).with_attributes({}))
    return node, True


def _insert(cache: dict[K, V], key: K, value: V) -> None:
    if len(cache) >= _MAX_ENTRIES:
        cache.clear()
    cache[key] = value


def _stored_key(entry: Entry, zarr_format: ZarrFormat) -> _Stored | None:
    if registry.is_extended():
        return None
    nbytes, values = 0, []
    for name in formats.DOCUMENTS[zarr_format]:
        value = entry.values.get(name)
        if value is not None:
            nbytes += len(value) if type(value) is bytes else memoryview(value).nbytes
            if nbytes > _MAX_KEY_NBYTES:
                return None
            value = bytes(value)
        values.append(value)
    return zarr_format, _settings(), tuple(values)


def _is_cacheable(metadata: ArrayMetadata) -> bool:
    if metadata.zarr_format == 3 and (metadata.extra or metadata.storage_transformers or metadata.pending):
        return False
    return not any(codec.is_foreign for codec in metadata.codecs)


def _private_copy(metadata: ArrayMetadata) -> ArrayMetadata:
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
    return (zarr_format, _settings(), data) if len(data) <= _MAX_KEY_NBYTES else None


def _settings() -> _Settings:
    """Return the settings that decide how a document is read."""
    global _known_settings
    changes, known = config.changes, _known_settings
    if known is None or known[0] != changes:
        known = _known_settings = (changes, (is_strict(), bool(config.get("zarr_python.documents"))))
    return known[1]


def parse_document(document: Mapping[str, Any], *, group: bool) -> ArrayMetadata | GroupMetadata:
    """Parse the metadata in one document, attributes included. Raises `MetadataValidationError`."""
    number: Any = document.get("zarr_format", 3)
    if not formats.is_format(number):
        problem = Problem(("zarr_format",), "value", f"expected 1, 2 or 3, got {number!r}")
        raise MetadataValidationError("invalid metadata", [problem])
    keys = formats.KEYS[number]
    if number == 3:
        return parse_node(3, {keys.array: document})
    rest = {name: value for name, value in document.items() if name not in ("attributes", "node_type")}
    name = ".zgroup" if group else keys.array
    return parse_node(number, {name: rest, keys.attributes or "": document.get("attributes") or {}})
