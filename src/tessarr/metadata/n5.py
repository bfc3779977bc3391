"""Convert N5's ``attributes.json`` to documents of Zarr v3, and back.

Source: N5 4.0, "file-system specification" and its Java source; zarr-extensions, "n5_default".

>>> document = to_zarr({"dimensions": [4, 6], "blockSize": [2, 3], "dataType": "uint8", "compression": {"type": "raw"}}, "C")
>>> document["shape"], document["chunk_key_encoding"]["configuration"]
([6, 4], {'template': '{1}/{0}'})
>>> to_n5(document, "C", {})
{'dimensions': [4, 6], 'blockSize': [2, 3], 'dataType': 'uint8', 'compression': {'type': 'raw'}}

A dataset is a directory whose attributes have ``dimensions``, ``blockSize``, ``dataType`` and ``compression`` (or, before
N5 2.0, ``compressionType``); every other directory is a group. N5 lists the fastest axis first. With axis order ``"C"``
arrays have the reverse order, as in zarr-python 2 and z5py; with ``"F"`` N5's order, as in Java, TensorStore and
Neuroglancer. The fill value is 0, of text empty. All other members are attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from tessarr.errors import MetadataValidationError, Problem
from tessarr.types import JSON, JSONObject

AxisOrder: TypeAlias = Literal["C", "F"]

VERSION = "4.0.0"
"""Version that a new container states under ``n5`` in its root."""
DOCUMENT = "attributes.json"
_DATASET = ("dimensions", "blockSize", "dataType", "compression", "compressionType")
_TYPES = frozenset(
    (*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64", "string", "object")
)  # fmt: skip
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


def axis_names(attributes: Mapping[str, object], ndim: int) -> list[str] | None:
    """Return the names of the axes of a dataset, fastest first; ``None``: they have no names."""
    names = attributes.get("axes")
    fine = isinstance(names, list | tuple) and len(names) == ndim and all(isinstance(name, str) for name in names)
    return list(names) if fine and isinstance(names, list | tuple) else None


def own_attributes(attributes: Mapping[str, JSON]) -> JSONObject:
    """Return the attributes of a group but for what N5 itself states."""
    return {name: value for name, value in attributes.items() if name != "n5"}


def is_dataset(attributes: Mapping[str, object]) -> bool:
    """Return whether the attributes of a directory make it a dataset."""
    return all(name in attributes for name in _DATASET[:3])


def to_zarr(attributes: Mapping[str, Any], order: AxisOrder, names: Sequence[str] | None = None) -> JSONObject:
    """Make the v3 document of a directory with these attributes. Raises `MetadataValidationError` listing every
    problem.

    `names` are those of the axes, slowest first, of a dataset that names none itself.
    """
    if not is_dataset(attributes):
        return {"zarr_format": 3, "node_type": "group", "attributes": own_attributes(attributes)}
    problems: list[Problem] = []
    sizes = {name: _sizes(attributes[name], name, problems) for name in ("dimensions", "blockSize")}
    ndim = len(sizes["dimensions"])
    if ndim != len(sizes["blockSize"]) or ndim == 0:
        problems.append(Problem(("blockSize",), "value", f"must have as many axes as dimensions, {ndim}, at least one"))
    data_type = attributes["dataType"]
    if not isinstance(data_type, str) or data_type not in _TYPES:
        problems.append(
            Problem(("dataType",), "unsupported", f"tessarr reads numbers, text and objects, not {data_type!r}")
        )
    compressor = None if problems else _compressor(attributes, str(data_type), problems)
    if problems:
        raise MetadataValidationError("invalid N5 dataset", problems)
    shape, chunks = sizes["dimensions"], sizes["blockSize"]
    if data_type == "object":  # an element is what a block holds
        shape, chunks = [-(-n // m) for n, m in zip(shape, chunks, strict=True)], [1] * ndim
    turned = order == "C"
    own = axis_names(attributes, ndim)
    dims = (own[::-1] if turned else own) if own is not None else names
    plain = (*_DATASET, "n5", *(() if own is None else ("axes",)))
    document: JSONObject = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape[::-1] if turned else shape,
        "data_type": "bytes" if data_type == "object" else data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks[::-1] if turned else chunks}},
        "chunk_key_encoding": keys(ndim, order),
        "fill_value": fill(str(data_type)),
        "codecs": codecs(ndim, str(data_type), order, compressor),
        "attributes": {name: value for name, value in attributes.items() if name not in plain},
    }
    return document if dims is None or len(dims) != ndim else {**document, "dimension_names": list(dims)}


def keys(ndim: int, order: AxisOrder) -> JSONObject:
    """Make the chunk key encoding of a dataset."""
    if order == "F":
        return {"name": "v2", "configuration": {"separator": "/"}}
    template = "/".join(f"{{{axis}}}" for axis in reversed(range(ndim)))
    return {"name": "template", "configuration": {"template": template}}


def fill(data_type: str) -> JSON:
    """Return the value of elements of missing blocks."""
    return "" if data_type in ("string", "object", "bytes") else 0


def codecs(ndim: int, data_type: str, order: AxisOrder, compressor: JSONObject | None) -> list[JSON]:
    """Make the codecs of a dataset."""
    reverse: JSONObject = {"name": "transpose", "configuration": {"order": list(reversed(range(ndim)))}}
    if data_type in ("object", "bytes"):
        after: list[JSON] = [] if compressor is None else [compressor]
        return [{"name": "tessarr.n5_objects", "configuration": {"codecs": after}}]
    raw: JSONObject = {"name": "bytes"}
    if not data_type.endswith("int8"):
        raw["configuration"] = {"endian": "big"}
    inner: list[JSON] = [{"name": "tessarr.n5_strings"}] if data_type == "string" else [reverse, raw]
    inner += [] if compressor is None else [compressor]
    name = "n5_varlen" if data_type == "string" else "n5_default"
    block: JSONObject = {"name": name, "configuration": {"codecs": inner}}
    return [reverse, block] if order == "C" else [block]


def _sizes(value: object, name: str, problems: list[Problem]) -> list[int]:
    least = 1 if name == "blockSize" else 0
    if not isinstance(value, Sequence) or not all(type(n) is int and n >= least for n in value):
        problems.append(Problem((name,), "value", f"must be a list of integers of at least {least}, got {value!r}"))
        return []
    return list(value)


# -- compressions --------------------------------------------------------------------------------------------------------


def _compressor(attributes: Mapping[str, object], data_type: str, problems: list[Problem]) -> JSONObject | None:
    """Make the codec of a dataset's compression; ``None`` for raw."""
    given = attributes.get("compression")
    if given is None and isinstance(attributes.get("compressionType"), str):
        given = {"type": attributes["compressionType"]}
    kind = given.get("type") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(kind, str):
        problems.append(Problem(("compression",), "value", f"must be an object with a type, got {given!r}"))
        return None
    if kind == "raw":
        return None
    made = _MAKERS.get(kind)
    if made is None:
        known = ", ".join(sorted(("raw", *_MAKERS)))
        problems.append(Problem(("compression", "type"), "unsupported", f"unknown {kind!r}; known: {known}"))
        return None
    try:
        found: JSONObject = made({**given, "width": attributes.get("blockSize")}, data_type)
    except (TypeError, ValueError, IndexError) as error:
        problems.append(Problem(("compression",), "value", f"{given!r}: {error}"))
        return None
    return found


def _integer(given: Mapping[str, JSON], name: str, default: int) -> int:
    value = given.get(name, default)
    if type(value) is not int:
        raise ValueError(f"{name} must be an integer")
    return value


def _gzip(given: Mapping[str, JSON], _: str) -> JSONObject:
    level = _integer(given, "level", -1)
    if given.get("useZlib", False):
        return {"name": "numcodecs.zlib", "configuration": {"level": level}}
    return {"name": "gzip", "configuration": {"level": 6 if level < 0 else level}}


def _blosc(given: Mapping[str, JSON], data_type: str) -> JSONObject:
    bits = int(data_type.strip("abcdefghijklmnopqrstuvwxyz") or 8)
    return {
        "name": "blosc",
        "configuration": {
            "typesize": bits // 8,
            "cname": given.get("cname", "blosclz"),
            "clevel": _integer(given, "clevel", 6),
            "shuffle": _SHUFFLES[_integer(given, "shuffle", 0)],
            "blocksize": _integer(given, "blocksize", 0),
        },
    }


def _jpeg(given: Mapping[str, JSON], _: str) -> JSONObject:
    kind = given.get("dataType", "uint8")
    options = {name: given[name] for name in ("min", "max", "gamma") if name in given}
    quality, sizes = _integer(given, "quality", 100), given["width"]
    if isinstance(sizes, Sequence):  # the width of the images, which Java takes from the block
        options["width"] = sizes[0]
    return {"name": "tessarr.n5_jpeg", "configuration": {"quality": quality, "data_type": kind, **options}}


_MAKERS: dict[str, Any] = {
    "gzip": _gzip,
    "bzip2": lambda given, _: {"name": "numcodecs.bz2", "configuration": {"level": _integer(given, "blockSize", 9)}},
    "xz": lambda given, _: {"name": "numcodecs.lzma", "configuration": {"preset": _integer(given, "preset", 6)}},
    "lz4": lambda given, _: {
        "name": "tessarr.lz4java",
        "configuration": {"block_size": _integer(given, "blockSize", 1 << 16)},
    },
    "zstd": lambda given, _: {
        "name": "zstd",
        "configuration": {"level": _integer(given, "level", 3), "checksum": False},
    },
    "blosc": _blosc,
    "jpeg": _jpeg,
}


def compression(codec: Mapping[str, Any] | None) -> JSONObject | None:
    """Return the N5 compression of a codec object; ``None`` when N5 has no such compression.

    >>> compression({"name": "gzip", "configuration": {"level": 1}})
    {'type': 'gzip', 'level': 1}
    """
    if codec is None:
        return {"type": "raw"}
    options = dict(codec.get("configuration") or {})
    match codec.get("name"):
        case "gzip":
            return {"type": "gzip", "level": options["level"]}
        case "numcodecs.zlib":
            return {"type": "gzip", "level": options.get("level", 1), "useZlib": True}
        case "numcodecs.bz2":
            return {"type": "bzip2", "blockSize": options.get("level", 1)}
        case "numcodecs.lzma" if options.get("format", 1) == 1 and not options.get("filters"):
            preset = options.get("preset")
            return {"type": "xz", "preset": 6 if preset is None else preset}
        case "tessarr.lz4java":
            return {"type": "lz4", "blockSize": options["block_size"]}
        case "tessarr.n5_jpeg":
            known = {name: options[name] for name in ("quality", "min", "max", "gamma")}
            return {"type": "jpeg", "dataType": options["data_type"], **known}
        case "zstd" if not options.get("checksum", False):
            return {"type": "zstd", "level": options["level"]}
        case "blosc":
            shuffle = _SHUFFLES.index(options["shuffle"])
            known = {name: options[name] for name in ("cname", "clevel")}
            return {"type": "blosc", **known, "shuffle": shuffle, "blocksize": options["blocksize"]}
    return None


# -- v3 to N5 -----------------------------------------------------------------------------------------------------------


def to_n5(
    document: Mapping[str, Any], order: AxisOrder, old: Mapping[str, JSON], names: Sequence[str] | None = None
) -> JSONObject:
    """Make the attributes equivalent to a v3 document; `old` are the attributes that they replace, `names` as in `to_zarr`.

    Members of `old` that describe a dataset keep their spelling where the meaning is the same.
    Raises `MetadataValidationError` for what N5 cannot express.
    """
    version: JSONObject = {"n5": old["n5"]} if "n5" in old else {}
    own = dict(document.get("attributes") or {})
    reserved = [name for name in own if name in (*_DATASET, "n5")]
    if reserved:
        problems = [Problem(("attributes", name), "value", "is reserved by N5") for name in reserved]
        raise MetadataValidationError("attributes with names that N5 reserves", problems)
    if document.get("node_type") != "array":
        return {**version, **own}
    spelled = {name: old[name] for name in _DATASET if name in old}
    if is_dataset(old) and _same(document, to_zarr(old, order, names)):
        named = axis_names(old, len(document["shape"])) is not None
        return {**version, **spelled, **({"axes": old["axes"]} if named else {}), **own}
    made = _dataset(document, order, old)
    if "axes" not in old and names is not None and document.get("dimension_names") == list(names):
        made.pop("axes", None)
    return {**version, **made, **own}


def _same(document: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return all(document.get(name) == other[name] for name in other if name != "attributes")


def _dataset(document: Mapping[str, Any], order: AxisOrder, old: Mapping[str, JSON]) -> JSONObject:
    if document["data_type"] == "bytes":
        return _objects(document, order, old)
    shape = list(document["shape"])
    grid = document["chunk_grid"]
    chunks = list(grid.get("configuration", {}).get("chunk_shape", [])) if grid.get("name") == "regular" else []
    data_type = document["data_type"]
    block = next((codec for codec in document["codecs"] if codec.get("name") in ("n5_default", "n5_varlen")), None)
    inner = block["configuration"]["codecs"] if block is not None else []
    before = 1 if data_type == "string" else 2
    compressor = inner[before] if len(inner) > before else None
    found = compression(compressor)
    expected = codecs(len(shape), str(data_type), order, compressor)
    checks: list[tuple[str, bool, object]] = [
        ("chunk_grid", len(chunks) == len(shape) > 0, "regular, of one axis or more"),
        ("data_type", data_type in _TYPES and data_type != "object", "integers, float32, float64, string or bytes"),
        ("fill_value", document.get("fill_value") == fill(str(data_type)), repr(fill(str(data_type)))),
        ("chunk_key_encoding", document["chunk_key_encoding"] == keys(len(shape), order), keys(len(shape), order)),
        ("codecs", _plain(document["codecs"]) == _plain(expected), expected),
        ("codecs", found is not None, "a compression of N5"),
        ("storage_transformers", not document.get("storage_transformers"), "none"),
    ]
    _refuse(document, checks)
    turned = order == "C"
    dataset: JSONObject = {
        "dimensions": shape[::-1] if turned else shape,
        "blockSize": chunks[::-1] if turned else chunks,
        "dataType": data_type,
        "compression": found,
    }
    return {**dataset, **_named(document.get("dimension_names"), order)}


def _refuse(document: Mapping[str, object], checks: Sequence[tuple[str, bool, object]]) -> None:
    """Raise `MetadataValidationError` for the checks, of name, result and what N5 has, whose result is ``False``."""
    problems = [
        Problem((name,), "value", f"N5 has {wanted}; got {document.get(name)!r}")
        for name, fine, wanted in checks
        if not fine
    ]
    if problems:
        hint = "Create datasets with tessarr.create_n5"
        raise MetadataValidationError("this array cannot be an N5 dataset", problems, hint=hint)


def _named(names: object, order: AxisOrder) -> JSONObject:
    """Make the member for the names of the axes, where each has a name."""
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        return {}
    return {"axes": list(names)[::-1] if order == "C" else list(names)}


def _objects(document: Mapping[str, Any], order: AxisOrder, old: Mapping[str, JSON]) -> JSONObject:
    """Make the members of a dataset of objects: an element is a block, whose size stays as it was, else is 1."""
    shape = list(document["shape"])
    ndim = len(shape)
    codec = document["codecs"][0] if len(document["codecs"]) == 1 else {}
    inner = codec.get("configuration", {}).get("codecs", []) if codec.get("name") == "tessarr.n5_objects" else [{}, {}]
    found = compression(inner[0] if inner else None) if len(inner) < 2 else None
    grid = document["chunk_grid"].get("configuration", {}).get("chunk_shape", [])
    checks: list[tuple[str, bool, object]] = [
        ("chunk_grid", ndim > 0 and list(grid) == [1] * ndim, "blocks of one object"),
        ("fill_value", document.get("fill_value") in ("", []), "empty objects"),
        ("chunk_key_encoding", document["chunk_key_encoding"] == keys(ndim, order), keys(ndim, order)),
        ("codecs", found is not None, "tessarr.n5_objects with a compression of N5"),
        ("storage_transformers", not document.get("storage_transformers"), "none"),
    ]
    _refuse(document, checks)
    turned = shape[::-1] if order == "C" else shape
    was = old if is_dataset(old) and old["dataType"] == "object" else {}
    blocks, kept = _sizes(was.get("blockSize"), "blockSize", []), _sizes(was.get("dimensions"), "dimensions", [])
    blocks = blocks if len(blocks) == ndim else [1] * ndim
    same = len(kept) == ndim and [-(-n // m) for n, m in zip(kept, blocks, strict=True)] == turned
    dimensions = kept if same else [n * m for n, m in zip(turned, blocks, strict=True)]
    dataset: JSONObject = {"dimensions": dimensions, "blockSize": blocks, "dataType": "object", "compression": found}
    return {**dataset, **_named(document.get("dimension_names"), order)}


def _plain(value: object) -> Any:
    """Drop configurations without effect from JSON."""
    if isinstance(value, Mapping):
        kept = {name: _plain(item) for name, item in value.items()}
        return {
            name: item
            for name, item in kept.items()
            if not (name == "configuration" and item in ({}, {"endian": None}))
        }
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
