"""Arrays and groups from metadata that is at hand; nothing is read or written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessarr.core.array import Array
from tessarr.core.creation.metadata import array_config
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.stored.parse_cache import parse_node
from tessarr.errors import NodeTypeValidationError
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata


def array_from_document(store_path: Any, document: Mapping[str, Any]) -> Array:
    """An array at a place with the metadata of one document (v1, v2: attributes under ``attributes``)."""
    where, here, _ = locate(store_path, None, None)
    metadata = parsed(document, group=False)
    if not isinstance(metadata, ArrayMetadata):
        raise NodeTypeValidationError("the document describes a group, not an array")
    chosen = array_config(None)
    order = metadata.order if metadata.zarr_format != 3 else chosen.order
    return Array._make(where, here, metadata, chosen.options, read_only=False, order=order)


def group_from_document(store_path: Any, document: Mapping[str, Any]) -> Group:
    """A group at a place with the metadata of one document (v2: attributes under ``attributes``)."""
    where, here, _ = locate(store_path, None, None)
    metadata = parsed(
        {"node_type": "group", **document} if document.get("zarr_format", 3) == 3 else document, group=True
    )
    if not isinstance(metadata, GroupMetadata):
        raise NodeTypeValidationError("the document describes an array, not a group")
    return Group._make(where, here, metadata, read_only=False)


def parsed(document: Mapping[str, Any], *, group: bool) -> ArrayMetadata | GroupMetadata:
    """The metadata of one document, attributes included."""
    number: Any = document.get("zarr_format", 3)
    keys = formats.KEYS[number]
    if number == 3:
        return parse_node(3, {keys.array: document})
    rest = {name: value for name, value in document.items() if name not in ("attributes", "node_type")}
    name = ".zgroup" if group else keys.array
    return parse_node(number, {name: rest, keys.attributes or "": document.get("attributes") or {}})
