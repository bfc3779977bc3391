"""Convert documents to one spelling per meaning, so that they can be compared.

Two documents are equivalent when only these differ: member order, ``"crc32c"`` or ``{"name": "crc32c"}``, an empty
configuration or none, a default written or left out, ``[]`` or null where they mean the same, ``0`` or ``0.0``,
``"NaN"`` or its bit pattern.

>>> canonical({"zarr_format": 3, "node_type": "array", "codecs": ["crc32c"]})["codecs"]
[{'name': 'crc32c'}]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessarr.common.strict_json import plain
from tessarr.errors import TessarrError
from tessarr.types import JSON, JSONObject

_DEFAULTS: dict[str, JSONObject] = {
    "default": {"separator": "/"},
    "v2": {"separator": "."},
    "zstd": {"checksum": False},
    "sharding_indexed": {"index_location": "end"},
}
_ABSENT: JSONObject = {"attributes": {}, "storage_transformers": [], "dimension_names": None, "filters": None}


def canonical(document: Mapping[str, JSON]) -> JSONObject:
    """Convert an array's or group's document (v2: including its attributes) to its canonical spelling."""
    result = plain(dict(document))
    if result.get("zarr_format") == 2:
        _canonical_v2(result)
    else:
        for name in ("data_type", "chunk_grid", "chunk_key_encoding"):
            if name in result:
                result[name] = extension(result[name])
        for name in ("codecs", "storage_transformers"):
            if isinstance(result.get(name), list):
                result[name] = [extension(item) for item in result[name]]
        names = result.get("dimension_names")
        if isinstance(names, list) and not any(name is not None for name in names):
            result["dimension_names"] = None
    for name, absent in _ABSENT.items():
        if result.get(name) in (None, absent):
            result.pop(name, None)
    if "fill_value" in result:
        result["fill_value"] = _fill(result)
    return result  # type: ignore[no-any-return]


def _canonical_v2(document: JSONObject) -> None:
    if document.get("filters") == []:
        document["filters"] = None
    if document.get("dimension_separator") == ".":
        del document["dimension_separator"]


def extension(value: object) -> Any:
    """Convert an extension to an object with its defaults, without empty configuration and ``must_understand: true``."""
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping) or "name" not in value:
        return plain(value)
    name = value["name"]
    configuration = value.get("configuration")
    if isinstance(configuration, Mapping):
        configuration = {key: _inner(key, item) for key, item in configuration.items()}
        if name in ("optional", "zarrs.optional") and "name" in configuration:  # a type as the configuration of another
            configuration = extension(configuration)
    if configuration in (None, {}):
        configuration = {}
    if isinstance(name, str) and isinstance(configuration, dict):
        configuration = {**_DEFAULTS.get(name, {}), **configuration}
    result = {key: plain(item) for key, item in value.items() if key not in ("name", "configuration")}
    if result.get("must_understand") is True:
        del result["must_understand"]
    return {"name": name, **({"configuration": configuration} if configuration else {}), **result}


def _inner(key: str, item: object) -> Any:
    """Convert codecs and data types nested in configurations (sharding, conditional, struct, cast_value)."""
    if key in ("codecs", "index_codecs", "mask_codecs", "data_codecs") and isinstance(item, list | tuple):
        return [extension(codec) for codec in item]
    if key == "data_type":
        return extension(item)
    if key == "fields" and isinstance(item, list | tuple):
        return [
            {**field, "data_type": extension(field["data_type"])}
            if isinstance(field, Mapping) and "data_type" in field
            else plain(field)
            for field in item
        ]
    return plain(item)


def _fill(document: JSONObject) -> JSON:
    """Convert a fill value to the spelling of its data type, where the type is known (an unknown type: NaN as a
    word).
    """
    value = document["fill_value"]
    if isinstance(value, float) and value != value:
        return "NaN"
    if value is None:
        return None
    try:
        if document.get("zarr_format") == 2:
            from tessarr.dtypes.parse import from_v2

            filters: Any = document.get("filters")
            v2_type = from_v2(document.get("dtype"), filters)
            return v2_type.dump_fill(v2_type.parse_fill(value, 2), 2)
        from tessarr.dtypes.parse import from_v3

        data_type = from_v3(document.get("data_type"))
        return data_type.dump_fill(data_type.parse_fill(value, 3), 3)
    except (TessarrError, TypeError, ValueError, OverflowError):
        return value
