"""Recognise and correct invalid documents of known writers, with one rule per mistake.

A rule is a pure function from a document (parsed JSON) to the corrected document, or ``None`` when it does not apply.
`tessarr.tools.repair` applies the rules that a report names, one after another, to the documents stored at that time.

Source: the histories of zarr-python, zarrita and zarrs; docs/checking.md names versions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tessarr.errors import TessarrError
from tessarr.metadata import legacy
from tessarr.metadata.legacy import Document, Rule


def findings(name: str, document: object) -> Iterator[tuple[str, str]]:
    """Yield the rules that apply to the document called `name`: (rule id, description)."""
    if not isinstance(document, dict):
        return
    large = ("attributes", "consolidated_metadata")
    document = {field: {} if field in large and value is not None else value for field, value in document.items()}
    if name == "zarr.json" and document.get("consolidated_metadata") == {}:
        del document["consolidated_metadata"]
    for rule, (names, say, apply_rule) in RULES.items():
        if name in names and apply_rule(document) is not None:
            yield rule, say


def apply_rule(rule: str, document: Document) -> Document:
    """Apply `rule` to a document; return it unchanged when the rule does not apply (any more)."""
    return RULES[rule][2](document) or document


def _endian(document: Document) -> Document | None:
    new = legacy.copied(document, "codecs")
    for codecs in legacy.codec_lists(new):
        for position, codec in enumerate(codecs):
            if codec == "endian":
                codecs[position] = {"name": "bytes"}
            elif isinstance(codec, dict) and codec.get("name") == "endian":
                codec["name"] = "bytes"
    return legacy.changed(document, new)


def _order(document: Document) -> Document | None:
    new = legacy.copied(document, "codecs")
    shape = document.get("shape")
    if not isinstance(shape, list):
        return None
    axes = list(range(len(shape)))
    for codecs in legacy.codec_lists(new):
        for codec in codecs:
            inner = codec.get("configuration") if isinstance(codec, dict) and codec.get("name") == "transpose" else None
            if isinstance(inner, dict) and inner.get("order") in ("C", "F"):
                inner["order"] = axes if inner["order"] == "C" else axes[::-1]
    return legacy.changed(document, new)


def _null(document: Document) -> Document | None:
    """Remove members that are null instead of absent."""
    names = ("storage_transformers", "dimension_names", "consolidated_metadata", "attributes")
    absent = [name for name in names if name in document and document[name] is None]
    return {name: value for name, value in document.items() if name not in absent} if absent else None


def _true(document: Document) -> Document | None:
    """Replace chunk length ``true`` by 1. The specifications require readers to refuse it, so this is a repair only."""
    new = legacy.copied(document, "chunks", "chunk_grid")
    lengths = new["chunks"] if "chunks" in new else legacy.grid_lengths(new, "regular", "chunk_shape")
    if not isinstance(lengths, list):
        return None
    lengths[:] = [1 if length is True else length for length in lengths]
    return legacy.changed(document, new)


def _no_codecs(document: Document) -> Document | None:
    """Add the codec bytes (little-endian) to an array without codecs, whose chunks are bare elements."""
    if document.get("node_type") != "array" or "codecs" in document:
        return None
    from tessarr.dtypes.parse import from_v3

    try:
        data_type = from_v3(document.get("data_type"))
    except TessarrError:
        return None
    order = {"configuration": {"endian": "little"}} if data_type.has_byteorder else {}
    return {**document, "codecs": [{"name": "bytes", **order}]} if data_type.itemsize is not None else None


def _short(document: Document) -> Document | None:
    new = legacy.copied(document, "codecs")
    for codecs in legacy.codec_lists(new):
        codecs[:] = [{"name": codec} if isinstance(codec, str) else codec for codec in codecs]
    for name in ("chunk_grid", "chunk_key_encoding"):
        if isinstance(new.get(name), str):
            new[name] = {"name": new[name]}
    return legacy.changed(document, new)


def _struct(document: Document) -> Document | None:
    data_type = document.get("data_type")
    name = data_type.get("name") if isinstance(data_type, dict) else data_type
    if name not in ("structured", "struct"):
        return None
    from tessarr.dtypes.parse import from_v3

    try:
        parsed = from_v3(data_type)
        fill = document.get("fill_value")
        new_fill = fill if fill is None else parsed.dump_fill(parsed.parse_fill(fill, 3), 3)
        new = {**document, "data_type": parsed.to_json(), "fill_value": new_fill}
    except TessarrError:
        return None
    new = legacy.copied(new, "codecs")
    for codecs in legacy.codec_lists(new):
        for position, codec in enumerate(codecs):
            stated = codec.get("configuration") if isinstance(codec, dict) else None
            bare = codec == "bytes" or (isinstance(codec, dict) and codec.get("name") == "bytes" and not stated)
            if bare and parsed.has_byteorder:  # zarr-python left it out for little-endian
                codecs[position] = {"name": "bytes", "configuration": {"endian": "little"}}
    return legacy.changed(document, new)


def _fill(document: Document) -> Document | None:
    """Replace a fill value of 0, or "", of text, bytes and records, by Base64 of all bytes."""
    fill, dtype = document.get("fill_value"), document.get("dtype")
    is_bytes = isinstance(dtype, list) or (isinstance(dtype, str) and dtype[1:2] in ("S", "U", "V"))
    if not is_bytes or fill is None or not (fill == "" or (type(fill) is int and fill == 0)):
        return None
    from tessarr.dtypes.parse import from_v2

    try:
        data_type = from_v2(dtype, None)
        return legacy.changed(document, {**document, "fill_value": data_type.dump_fill(data_type.default_fill(), 2)})
    except TessarrError:
        return None


def _byteorder(document: Document) -> Document | None:
    dtype = document.get("dtype")
    return legacy.changed(document, {**document, "dtype": legacy.plain_orders(dtype)}) if "dtype" in document else None


def _filters(document: Document) -> Document | None:
    return {**document, "filters": None} if document.get("filters") == [] else None


def _codec(document: Document) -> Document | None:
    compressor = document.get("compressor")
    if not isinstance(compressor, dict):
        return None
    drop = {"zstd": {"checksum"}, "blosc": {"typesize"}}.get(str(compressor.get("id")), set())
    if compressor.get("checksum") is True:
        drop = set()  # the stored frames have checksums, of which the member informs readers
    kept = {name: value for name, value in compressor.items() if name not in drop}
    return legacy.changed(document, {**document, "compressor": kept})


def _nan(document: Document) -> Document | None:
    fill = document.get("fill_value")
    if isinstance(fill, list):
        return legacy.changed(document, {**document, "fill_value": [_word(part) for part in fill]})
    return legacy.changed(document, {**document, "fill_value": _word(fill)}) if "fill_value" in document else None


def _word(value: object) -> object:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _block(document: Document) -> Document | None:
    if "consolidated_metadata" not in document:
        return None
    return {name: value for name, value in document.items() if name != "consolidated_metadata"}


_V3, _V2 = ("zarr.json",), (".zarray",)
RULES: dict[str, tuple[tuple[str, ...], str, Rule]] = {
    **legacy.RULES,
    "LEGACY-BOOL": (("zarr.json", ".zarray"), "chunk lengths are integers", _true),
    "LEGACY-CODECS": (_V3, "an array without codecs is meant to have the codec bytes", _no_codecs),
    "LEGACY-NULL": (_V3, "null members must be left out", _null),
    "LEGACY-ENDIAN": (_V3, "the codec endian is now called bytes", _endian),
    "LEGACY-ORDER": (_V3, 'the orders "C" and "F" are now permutations', _order),
    "LEGACY-SHORT": (_V3, "readers of Zarr 3.0 expect objects, not names", _short),
    "LEGACY-STRUCT": (_V3, "structured types are now written as struct, with a byte order", _struct),
    "LEGACY-FILL": (_V2, "the fill value of bytes is Base64, of text a string", _fill),
    "LEGACY-BYTEORDER": (_V2, "single bytes have no byte order", _byteorder),
    "LEGACY-FILTERS": (_V2, "no filters is null, not an empty list", _filters),
    "LEGACY-CODEC": (_V2, "members that numcodecs of zarr-python 2 does not know", _codec),
    "LEGACY-NAN": (_V2, 'NaN and Infinity are written as strings ("NaN")', _nan),
    "LEGACY-BLOCK": ((".zgroup",), "consolidated_metadata is not a member of .zgroup", _block),
}
"""Rule id → names of its documents, its description, and the correcting function."""
