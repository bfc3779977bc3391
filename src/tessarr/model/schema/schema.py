"""Make JSON Schemas (draft 2020-12) of a model, for validators in any language.

>>> schema = json_schema(3)
>>> schema["$schema"], sorted(schema["$defs"])[:3]
('https://json-schema.org/draft/2020-12/schema', ['Array', 'ChunkGrid', 'ChunkKeyEncoding'])

The schemas accept and reject the same documents as the parser, apart from what JSON Schema cannot express: relations
between members (ranks, the length of a fill value, chunks and shards, the effect of a codec on a data type), ``2.0``
instead of 2, and unknown names. docs/model.md lists the faults of the draft's schemas.

Source: ZEP 6, "Zarr Object Models in JSON schema".
"""

from __future__ import annotations

from typing import Literal

from tessarr.model.schema.extension_points import (
    LENGTH,
    Schema,
    codecs,
    data_types,
    grids,
    key_encodings,
)

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAME_V3 = {"pattern": "^(?!__)(?!\\.+$)(?!zarr\\.json$)[^/]+$"}
_NAME_V2 = {"pattern": "^(?!\\.+$)(?!\\.z(array|group|attrs|metadata)$)[^/]+$"}
_IGNORABLE: Schema = {
    "type": "object",
    "properties": {"must_understand": {"const": False}},
    "required": ["must_understand"],
}


def json_schema(zarr_format: Literal[2, 3], *, members: bool = True) -> Schema:
    """Make the schema of a node and all below it; without `members`, of one node's document (v3) or model (v2)."""
    definitions = _v3(members) if zarr_format == 3 else _v2(members)
    return {
        "$schema": _DIALECT,
        "title": f"Zarr Object Model, Zarr v{zarr_format}",
        "anyOf": [{"$ref": "#/$defs/Group"}, {"$ref": "#/$defs/Array"}],
        "$defs": definitions,
    }


def _members(names: Schema) -> Schema:
    nodes = {"anyOf": [{"$ref": "#/$defs/Group"}, {"$ref": "#/$defs/Array"}]}
    return {"type": "object", "propertyNames": names, "additionalProperties": nodes, "default": {}}


def _v3(members: bool) -> Schema:
    data_type, conditions = data_types()
    transformer = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "configuration": {"type": "object"},
            "must_understand": {"const": False},
        },
        "required": ["name", "must_understand"],
    }
    array: Schema = {
        "type": "object",
        "properties": {
            "zarr_format": {"const": 3},
            "node_type": {"const": "array"},
            "shape": {"type": "array", "items": LENGTH},
            "data_type": {"$ref": "#/$defs/DataType"},
            "chunk_grid": {"$ref": "#/$defs/ChunkGrid"},
            "chunk_key_encoding": {"$ref": "#/$defs/ChunkKeyEncoding"},
            "fill_value": {"not": {"type": "null"}},
            "codecs": {"$ref": "#/$defs/Codecs"},
            "attributes": {"type": "object"},
            "dimension_names": {
                "anyOf": [{"type": "array", "items": {"type": ["string", "null"]}}, {"type": "null"}]
            },
            "storage_transformers": {"type": ["array", "null"], "items": transformer},
            "members": False,
        },
        "required": [
            "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"
        ],
        "additionalProperties": _IGNORABLE,
        "allOf": conditions,
    }  # fmt: skip
    if not members:
        del array["properties"]["members"]
    group = {
        "type": "object",
        "properties": {
            "zarr_format": {"const": 3},
            "node_type": {"const": "group"},
            "attributes": {"type": "object"},
            **({"members": _members(_NAME_V3)} if members else {"consolidated_metadata": {"type": ["object", "null"]}}),
        },
        "required": ["zarr_format", "node_type"],
        "additionalProperties": _IGNORABLE,
    }
    return {
        "Group": group,
        "Array": array,
        "DataType": data_type,
        "ChunkGrid": grids(),
        "ChunkKeyEncoding": key_encodings(),
        **codecs(),
    }


def _v2_fills() -> list[Schema]:
    """Make the schemas of fill values by kind of dtype; strings and bytes are left to the parser."""
    number = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
    kinds: dict[str, Schema] = {
        "^.[iu]": {"type": ["integer", "null"]},
        "^.f": number,
        "^.b": {"enum": [True, False, 0, 1, None]},
    }
    fills = [({"type": "string", "pattern": pattern}, fill) for pattern, fill in kinds.items()]
    fills.append(({"type": "array"}, {"anyOf": [{"type": ["string", "null"]}, {"const": 0}]}))
    return [
        {
            "if": {"properties": {"dtype": dtype}, "required": ["dtype"]},
            "then": {"properties": {"fill_value": fill}},
        }
        for dtype, fill in fills
    ]


def _v2(members: bool) -> Schema:
    codec = {"type": "object", "properties": {"id": {"type": "string", "not": {"const": "pickle"}}}, "required": ["id"]}
    name, positive = {"type": "string"}, {"type": "integer", "minimum": 1}
    field = {
        "type": "array",
        "prefixItems": [name, {"$ref": "#/$defs/Dtype"}, {"anyOf": [positive, {"type": "array", "items": positive}]}],
        "items": False,
        "minItems": 2,
    }
    kinds = [
        "[<>|](b1|i1|u1|S[1-9][0-9]*|V[1-9][0-9]*)",
        "[<>](i[248]|u[248]|f[248]|c8|c16|U[1-9][0-9]*)",
        "[<>][mM]8\\[([1-9][0-9]*)?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\\]",
        "\\|O8?|O",
        "[a-z][a-z0-9]*_[a-z0-9_]+|bfloat16|u?int[24]",
    ]
    array = {
        "type": "object",
        "properties": {
            "zarr_format": {"const": 2},
            "shape": {"type": "array", "items": LENGTH},
            "chunks": {"type": "array", "items": LENGTH},
            "dtype": {"$ref": "#/$defs/Dtype"},
            "compressor": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Codec"}]},
            "fill_value": {},
            "order": {"enum": ["C", "F"]},
            "filters": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/Codec"}}]},
            "dimension_separator": {"enum": [".", "/"]},
            "attributes": {"type": "object"},
            "members": False,
        },
        "required": ["zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"],
        "allOf": _v2_fills(),
    }
    group = {
        "type": "object",
        "properties": {
            "zarr_format": {"const": 2},
            "attributes": {"type": "object"},
            **({"members": _members(_NAME_V2)} if members else {}),
            "shape": False,
            "dtype": False,
        },
        "required": ["zarr_format"],
    }
    structured = {"type": "array", "items": field, "minItems": 1}
    return {
        "Group": group,
        "Array": array,
        "Dtype": {"anyOf": [{"type": "string", "pattern": f"^({'|'.join(kinds)})$"}, structured]},
        "Codec": codec,
    }
