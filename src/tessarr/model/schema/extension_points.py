"""Make JSON Schemas of the extension points of v3: data types with their fill values, codecs, grids, key encodings.

The names are those in the registry when a schema is made; those below have a schema of their configuration, all
others accept any object. Sources: Zarr v3.1 core and zarr-extensions, whose own schemas have defects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from tessarr import registry

Schema: TypeAlias = dict[str, Any]

POSITIVE: Schema = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
LENGTH: Schema = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
_BASE64: Schema = {"type": "string", "contentEncoding": "base64", "pattern": "^[A-Za-z0-9+/]*={0,2}$"}
_BYTE: Schema = {"type": "integer", "minimum": 0, "maximum": 255}
_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic")
_FLOAT_BYTES = {
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    "float8_e3m4": 1, "float8_e4m3": 1, "float8_e5m2": 1, "float8_e4m3fn": 1, "float8_e4m3b11fnuz": 1,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float6_e2m3fn": 1, "float6_e3m2fn": 1,
    "float4_e2m1fn": 1,
}  # fmt: skip
_NO_INFINITY = ("float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz")
_NO_NAN = ("float4_", "float6_")


def closed(properties: Schema, required: Iterable[str] = (), **more: object) -> Schema:
    """Make the schema of an object with these members and no others."""
    return {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False, **more
    }  # fmt: skip


def named(name: Schema, configuration: Schema, *, short: bool) -> Schema:
    """Make the schema of an extension definition: an object, or (`short`) its name alone."""
    parts = {"name": name, "configuration": configuration, "must_understand": {"type": "boolean"}}
    obj = closed(parts, ["name"] if short else ["name", "configuration"])
    return {"anyOf": [name, obj]} if short else obj


_EMPTY = closed({})
_ANY: Schema = {"type": "object"}


# -- data types ------------------------------------------------------------------------------------------------------


def _integer(bits: int, signed: bool) -> Schema:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return {"type": "integer", "minimum": low, "maximum": high}


def _floating(name: str) -> Schema:
    words = [] if name.startswith(_NO_NAN) else ["NaN"]
    if name not in _NO_INFINITY and not name.startswith(_NO_NAN) and name != "float8_e8m0fnu":
        words += ["Infinity", "-Infinity"]
    digits = 2 * _FLOAT_BYTES[name]
    bits = {"type": "string", "pattern": f"^0x[0-9a-fA-F]{{{digits}}}$"}
    return {"anyOf": [{"type": "number"}, {"enum": words}, bits]} if words else {"anyOf": [{"type": "number"}, bits]}


def _pair(part: Schema) -> Schema:
    return {"type": "array", "items": part, "minItems": 2, "maxItems": 2}


def fills() -> dict[str, tuple[Schema, Schema, bool]]:
    """Map each known data type to the schema of its fill value, the schema of its configuration, and whether that is
    optional.
    """
    known: dict[str, tuple[Schema, Schema, bool]] = {"bool": ({"type": "boolean"}, _EMPTY, True)}
    for bits in (2, 4, 8, 16, 32, 64):
        known[f"int{bits}"] = (_integer(bits, True), _EMPTY, True)
        known[f"uint{bits}"] = (_integer(bits, False), _EMPTY, True)
    for name in _FLOAT_BYTES:
        known[name] = (_floating(name), _EMPTY, True)
        if name != "float8_e4m3fn":
            known[f"complex_{name}"] = (_pair(_floating(name)), _EMPTY, True)
    known["complex64"] = (_pair(_floating("float32")), _EMPTY, True)
    known["complex128"] = (_pair(_floating("float64")), _EMPTY, True)
    known["string"] = ({"type": "string"}, _EMPTY, True)
    octets = {"anyOf": [{"type": "array", "items": _BYTE}, _BASE64]}
    known["bytes"] = known["variable_length_bytes"] = (octets, _EMPTY, True)
    sized = closed({"length_bytes": POSITIVE}, ["length_bytes"])
    known["raw_bytes"] = known["null_terminated_bytes"] = (_BASE64, sized, False)
    by_four = closed({"length_bytes": {**POSITIVE, "multipleOf": 4}}, ["length_bytes"])
    known["fixed_length_utf32"] = ({"type": "string"}, by_four, False)
    count = {"anyOf": [{"const": "NaT"}, _integer(64, True)]}
    factor = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
    unit = closed({"unit": {"enum": list(_UNITS)}, "scale_factor": factor}, ["unit", "scale_factor"])
    known["numpy.datetime64"] = known["numpy.timedelta64"] = (count, unit, False)
    field = closed({"name": {"type": "string", "minLength": 1}, "data_type": {"$ref": "#/$defs/DataType"}},
                   ["name", "data_type"])  # fmt: skip
    fields = {"type": "array", "items": field, "minItems": 1}
    known["struct"] = ({"anyOf": [{"type": "object"}, _BASE64]}, closed({"fields": fields}, ["fields"]), False)
    known["structured"] = ({"anyOf": [{"type": "object"}, _BASE64]}, _ANY, False)
    return {name: value for name, value in known.items() if name in set(registry.names("data_type"))}


def _multiples_of_eight() -> str:
    """Make a pattern for r8, r16, … without leading zeros: the last three digits decide divisibility by 8."""
    short = "|".join(str(number) for number in range(8, 1000, 8))
    long = "|".join(f"{number:03d}" for number in range(0, 1000, 8))
    return f"^r(?:{short}|[1-9][0-9]*(?:{long}))$"


def data_types() -> tuple[Schema, list[Schema]]:
    """Make the schema of a data type, and the conditions that tie fill values to it."""
    alternatives: list[Schema] = []
    conditions: list[Schema] = []
    known = fills()
    for configuration, short, names in _grouped([(name, known[name][1:]) for name in known]):
        alternatives.append(named({"enum": names}, configuration, short=short))
    for fill, names in _grouped([(name, known[name][:1]) for name in known]):
        with_name = {"type": "object", "properties": {"name": {"enum": names}}, "required": ["name"]}
        when = {"properties": {"data_type": {"anyOf": [{"enum": names}, with_name]}}, "required": ["data_type"]}
        conditions.append({"if": when, "then": {"properties": {"fill_value": fill}}})
    raw = {"type": "string", "pattern": _multiples_of_eight()}
    alternatives.append(named(raw, _EMPTY, short=True))
    octets = {"type": "array", "items": _BYTE, "minItems": 1}
    when = {"properties": {"data_type": {"type": "string", "pattern": "^r[0-9]+$"}}, "required": ["data_type"]}
    conditions.append({"if": when, "then": {"properties": {"fill_value": octets}}})
    others = sorted(set(registry.names("data_type")) - known.keys())
    if others:
        alternatives.append(named({"enum": others}, _ANY, short=True))
    return {"anyOf": alternatives}, conditions


def _grouped(items: list[tuple[str, tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Group names that share a schema, names last: validators try alternatives one after another."""
    groups: list[tuple[tuple[Any, ...], list[str]]] = []
    for name, value in items:
        for other, names in groups:
            if other == value:
                names.append(name)
                break
        else:
            groups.append((value, [name]))
    return [(*value, names) for value, names in groups]


# -- codecs ------------------------------------------------------------------------------------------------------------


def _codecs() -> dict[str, Schema]:
    """Make the schemas of the configurations of codecs."""
    level = {"type": "integer", "minimum": 0, "maximum": 9}
    endian = closed({"endian": {"enum": ["little", "big", None]}})
    blosc = closed(
        {
            "typesize": {"type": "integer", "minimum": 1},
            "cname": {"enum": ["lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib"]},
            "clevel": level,
            "level": {},  # an R writer repeats the level here; read with a warning
            "shuffle": {"enum": ["noshuffle", "shuffle", "bitshuffle"]},
            "blocksize": {"type": "integer", "minimum": 0},
        },
        ["cname", "clevel", "shuffle", "blocksize"],
        anyOf=[{"properties": {"shuffle": {"const": "noshuffle"}}}, {"required": ["typesize"]}],
    )
    zstd_level = {"type": "integer", "minimum": -131072, "maximum": 22}
    order = {"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": True}
    chain = {"$ref": "#/$defs/Codecs"}
    sharding = closed(
        {
            "chunk_shape": {"type": "array", "items": POSITIVE},
            "codecs": chain,
            "index_codecs": chain,
            "index_location": {"enum": ["start", "end"]},
        },
        ["chunk_shape", "codecs", "index_codecs"],
    )
    item = {"anyOf": [{"type": "integer", "minimum": -1}, {"type": "array", "items": LENGTH, "minItems": 1}]}
    return {
        "bytes": endian,
        "endian": endian,
        "transpose": closed({"order": {"anyOf": [order, {"enum": ["C", "F"]}]}}, ["order"]),
        "blosc": blosc,
        "gzip": closed({"level": level}, ["level"]),
        "zstd": closed({"level": zstd_level, "checksum": {"type": "boolean"}}),
        "crc32c": _EMPTY,
        "vlen-utf8": _EMPTY,
        "vlen-bytes": _EMPTY,
        "sharding_indexed": sharding,
        "bitround": closed({"keepbits": {"type": "integer", "minimum": 0}}, ["keepbits"]),
        "scale_offset": closed({"offset": {}, "scale": {}}),
        "reshape": closed({"shape": {"type": "array", "items": item}}, ["shape"]),
    }


def _needs(configuration: Schema) -> bool:
    return bool(configuration.get("required"))


def codecs() -> Schema:
    """Make the definitions: ``Codecs`` (array → array, one array → bytes, bytes → bytes) and the three kinds."""
    configurations = _codecs()
    kinds: dict[str, list[Schema]] = {"array_to_array": [], "array_to_bytes": [], "bytes_to_bytes": []}
    names = [name for name in registry.names("codec") if name != "numcodecs.pickle"]
    items = []
    for name in names:
        implementation = registry.get("codec", name)
        assert implementation is not None
        configuration = configurations.get(name, _ANY)
        short = name not in configurations or not _needs(configuration)
        items.append((name, (implementation.kind, configuration, short)))
    for kind, configuration, short, group in _grouped(items):
        kinds[kind].append(named({"enum": group}, configuration, short=short))
    unknown = closed(
        {
            "name": {"type": "string", "not": {"enum": names}},
            "configuration": _ANY,
            "must_understand": {"const": False},
        },
        ["name", "must_understand"],
    )
    definitions: Schema = {kind: {"anyOf": schemas} for kind, schemas in kinds.items()}
    definitions["IgnorableCodec"] = unknown
    before = {"anyOf": [{"$ref": "#/$defs/array_to_array"}, {"$ref": "#/$defs/IgnorableCodec"}]}
    after = {"anyOf": [{"$ref": "#/$defs/bytes_to_bytes"}, {"$ref": "#/$defs/IgnorableCodec"}]}
    middle = {"$ref": "#/$defs/array_to_bytes"}
    # a schema cannot repeat items before a fixed one, so each position of the array → bytes codec is listed
    positions = [
        {"prefixItems": [*([before] * position), middle], "items": after, "minItems": position + 1}
        for position in range(8)
    ]
    definitions["Codecs"] = {"type": "array", "anyOf": positions}
    return definitions


# -- grids and keys ----------------------------------------------------------------------------------------------------


def grids() -> Schema:
    """Make the schema of a chunk grid."""
    length = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
    regular = closed({"chunk_shape": {"type": "array", "items": length}}, ["chunk_shape"])
    run = {"type": "array", "items": POSITIVE, "minItems": 2, "maxItems": 2}
    axis = {"anyOf": [POSITIVE, {"type": "array", "items": {"anyOf": [POSITIVE, run]}, "minItems": 1}]}
    rectilinear = closed(
        {"kind": {"const": "inline"}, "chunk_shapes": {"type": "array", "items": axis}}, ["kind", "chunk_shapes"]
    )
    known = {"regular": regular, "rectilinear": rectilinear}
    return _of_point("chunk_grid", known)


def key_encodings() -> Schema:
    """Make the schema of a chunk key encoding."""
    separator = closed({"separator": {"enum": ["/", "."]}})
    text = {"type": "string", "maxLength": 1024}
    base = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/ChunkKeyEncoding"}]}
    template = closed({"template": text, "format": text, "separator": text})
    known = {
        "default": separator,
        "v2": separator,
        "fanout": closed({"max_children": {"type": "integer", "minimum": 100}}),
        "template": {**template, "oneOf": [{"required": ["template"]}, {"required": ["format"]}], "required": []},
        "prefix": closed({"prefix": text, "base_encoding": base, "base-encoding": base}, ["prefix", "base_encoding"]),
        "suffix": closed({"suffix": text, "base_encoding": base, "base-encoding": base}, ["suffix"]),
        "zarrs.default_suffix": closed({"suffix": text, "separator": {"enum": ["/", "."]}}, ["suffix"]),
    }
    return _of_point("chunk_key_encoding", known)


def _of_point(point: Any, known: dict[str, Schema]) -> Schema:
    return {
        "anyOf": [
            named({"const": name}, known.get(name, _ANY), short=name not in known or not _needs(known[name]))
            for name in registry.names(point)
        ]
    }
