"""Write the documents of a node, as its format states them.

Sources: the storage specifications of Zarr, versions 1, 2 and 3. v1 has the compression names that
`tessarr.metadata.v1` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tessarr.common import strict_json
from tessarr.dtypes.unstable import warn_of_unstable
from tessarr.errors import MetadataValidationError
from tessarr.settings import config
from tessarr.types import JSON, JSONObject

if TYPE_CHECKING:
    from tessarr.metadata.array import ArrayMetadata
    from tessarr.metadata.group import GroupMetadata


def array_documents(array: ArrayMetadata) -> dict[str, JSONObject]:
    """Return the documents of `array`: key relative to the node → JSON.

    Raises `MetadataValidationError` for what its format cannot express (v1 has no filters and few compressors).
    """
    if array.zarr_format == 3:
        return {"zarr.json": _array_v3(array)}
    if array.zarr_format == 2:
        return {".zarray": _array_v2(array), **_attributes_v2(array.attributes)}
    return {"meta": _array_v1(array), "attrs": array.attributes}


def group_documents(group: GroupMetadata) -> dict[str, JSONObject]:
    """Return the documents of `group`: key relative to the node → JSON.

    Raises `MetadataValidationError`: v1 has no groups.
    """
    if group.zarr_format == 3:
        document: JSONObject = {"zarr_format": 3, "node_type": "group", "attributes": group.attributes}
        return {"zarr.json": {**document, **group.extra}}
    if group.zarr_format == 2:
        return {".zgroup": {**group.extra, "zarr_format": 2}, **_attributes_v2(group.attributes)}
    raise MetadataValidationError("Zarr v1 has no groups", hint="Use zarr_format=2 or 3")


def dumps(documents: Mapping[str, JSONObject]) -> dict[str, bytes]:
    """Serialise documents as their format does: v3 in its order, v1 and v2 sorted and indented by four."""
    allow_nan = bool(config.get("attributes.allow_nan"))  # fill values are never NaN here, but the text "NaN"
    return {
        name: strict_json.dumps(document, indent=config.get("json_indent", 2), sort_keys=False, allow_nan=allow_nan)
        if name == "zarr.json"
        else strict_json.dumps(document, indent=4, sort_keys=True, allow_nan=allow_nan)
        for name, document in documents.items()
    }


def warn_of_unstable_array(node: ArrayMetadata | GroupMetadata) -> None:
    """Warn where zarr-python does when it writes the document of an array; see `warn_of_unstable`."""
    data_type = getattr(node, "data_type", None)
    if node.zarr_format == 3 and data_type is not None:
        warn_of_unstable(data_type)


def _array_v3(array: ArrayMetadata) -> JSONObject:
    assert array.fill_value is not None
    document: JSONObject = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(array.shape),
        "data_type": array.data_type.to_json(),
        "chunk_grid": array.chunk_grid.to_json(),
        "chunk_key_encoding": array.chunk_key_encoding.to_json(),
        "fill_value": array.data_type.dump_fill(array.fill_value, 3),
        "codecs": [codec.to_json() for codec in array.codecs],
        "attributes": array.attributes,
    }
    if array.dimension_names is not None:
        document["dimension_names"] = list(array.dimension_names)
    if array.storage_transformers or config.get("zarr_python.all_members"):
        document["storage_transformers"] = list(array.storage_transformers)
    return {**document, **array.extra}


def _array_v2(array: ArrayMetadata) -> JSONObject:
    fill = None if array.fill_value is None else array.data_type.dump_fill(array.fill_value, 2)
    document: JSONObject = {
        **array.extra,
        "zarr_format": 2,
        "shape": list(array.shape),
        "chunks": list(array.chunks),
        "dtype": array.data_type.to_v2(),
        "compressor": array.compressor,
        "fill_value": fill,
        "order": array.order,
        "filters": list(array.filters) if array.filters else None,
    }
    if array.dimension_separator == "/" or config.get("zarr_python.all_members"):
        document["dimension_separator"] = array.dimension_separator
    return document


def _attributes_v2(attributes: dict[str, JSON]) -> dict[str, JSONObject]:
    return {".zattrs": attributes} if attributes or config.get("attributes.write_empty") else {}


def _array_v1(array: ArrayMetadata) -> JSONObject:
    if array.filters:
        raise MetadataValidationError("Zarr v1 has no filters", got=[f.get("id") for f in array.filters])
    compression, options = _compression_v1(array.compressor)
    fill = None if array.fill_value is None else array.data_type.dump_fill(array.fill_value, 1)
    return {
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


def _compression_v1(compressor: JSON) -> tuple[JSON, JSON]:
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
