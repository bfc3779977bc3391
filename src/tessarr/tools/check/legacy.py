"""Documents that real libraries wrote wrongly, each recognised by one rule that also knows the right form.

A rule is a pure function from a document (parsed JSON) to the mended document, or ``None`` when it has nothing to say.
`tessarr.tools.repair` applies the rules that a report names, one after another, to what is stored at that time.

Source: the histories of zarr-python, zarrita and zarrs; docs/checking.md names versions.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from tessarr.errors import TessarrError

Document: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[Document], Document | None]

_OBJECT_CODECS = ("vlen-utf8", "vlen-bytes", "vlen-array", "json2", "msgpack2", "categorize")


def findings(name: str, document: object) -> Iterator[tuple[str, str]]:
    """The rules that have something to say about the document called `name`: (rule id, what it does)."""
    if not isinstance(document, dict):
        return
    large = ("attributes", "consolidated_metadata")
    document = {field: {} if field in large and value is not None else value for field, value in document.items()}
    if name == "zarr.json" and document.get("consolidated_metadata") == {}:
        del document["consolidated_metadata"]
    for rule, (names, say, mend) in RULES.items():
        if name in names and mend(document) is not None:
            yield rule, say


def mend(rule: str, document: Document) -> Document:
    """The document as `rule` would have it; itself when the rule has nothing to say (any more)."""
    return RULES[rule][2](document) or document


def _copied(document: Document, *fields: str) -> Document:
    """The document with copies of some members, which may then be changed."""
    return {**document, **{field: copy.deepcopy(document[field]) for field in fields if field in document}}


def _changed(old: Document, new: Document) -> Document | None:
    return None if _same(old, new) else new


def _same(a: Any, b: Any) -> bool:
    """Equal, where ``0`` and ``false`` are not, and NaN is NaN."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    number = isinstance(a, float) and isinstance(b, float)  # one of them may know its decimal text
    return bool((number or type(a) is type(b)) and (a == b or (a != a and b != b)))


def _codec_lists(document: Document) -> Iterator[list[Any]]:
    """Every list of codecs in a v3 array, those of shards included."""
    waiting = [document.get("codecs")]
    while waiting:
        codecs = waiting.pop()
        if isinstance(codecs, list):
            yield codecs
            for codec in codecs:
                inner = codec.get("configuration") if isinstance(codec, dict) else None
                if isinstance(inner, dict):
                    waiting += [inner.get("codecs"), inner.get("index_codecs")]


def _endian(document: Document) -> Document | None:
    new = _copied(document, "codecs")
    for codecs in _codec_lists(new):
        for position, codec in enumerate(codecs):
            if codec == "endian":
                codecs[position] = {"name": "bytes"}
            elif isinstance(codec, dict) and codec.get("name") == "endian":
                codec["name"] = "bytes"
    return _changed(document, new)


def _order(document: Document) -> Document | None:
    new = _copied(document, "codecs")
    shape = document.get("shape")
    if not isinstance(shape, list):
        return None
    axes = list(range(len(shape)))
    for codecs in _codec_lists(new):
        for codec in codecs:
            inner = codec.get("configuration") if isinstance(codec, dict) and codec.get("name") == "transpose" else None
            if isinstance(inner, dict) and inner.get("order") in ("C", "F"):
                inner["order"] = axes if inner["order"] == "C" else axes[::-1]
    return _changed(document, new)


def _null(document: Document) -> Document | None:
    names = ("storage_transformers", "dimension_names", "consolidated_metadata", "attributes")
    absent = [name for name in names if name in document and document[name] is None]
    return {name: value for name, value in document.items() if name not in absent} if absent else None


def _short(document: Document) -> Document | None:
    new = _copied(document, "codecs")
    for codecs in _codec_lists(new):
        codecs[:] = [{"name": codec} if isinstance(codec, str) else codec for codec in codecs]
    for name in ("chunk_grid", "chunk_key_encoding"):
        if isinstance(new.get(name), str):
            new[name] = {"name": new[name]}
    return _changed(document, new)


def _chunk0(document: Document) -> Document | None:
    new = _copied(document, "chunks", "chunk_grid")
    shape = document.get("shape")
    if "chunks" in new:
        lengths = new["chunks"]
    else:
        grid = new.get("chunk_grid")
        inner = grid.get("configuration") if isinstance(grid, dict) and grid.get("name") == "regular" else None
        lengths = inner.get("chunk_shape") if isinstance(inner, dict) else None
    if not isinstance(shape, list) or not isinstance(lengths, list) or len(shape) != len(lengths):
        return None
    for axis, length in enumerate(lengths):
        if (length is False or (type(length) is int and length == 0)) and shape[axis] == 0:
            lengths[axis] = 1
    return _changed(document, new)


def _struct(document: Document) -> Document | None:
    data_type = document.get("data_type")
    name = data_type.get("name") if isinstance(data_type, dict) else data_type
    if name not in ("structured", "struct"):
        return None
    from tessarr.dtypes.parse import from_v3

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = from_v3(data_type)
            fill = document.get("fill_value")
            new_fill = fill if fill is None else parsed.dump_fill(parsed.parse_fill(fill, 3), 3)
            new = {**document, "data_type": parsed.to_json(), "fill_value": new_fill}
    except TessarrError:
        return None
    new = _copied(new, "codecs")
    for codecs in _codec_lists(new):
        for position, codec in enumerate(codecs):
            stated = codec.get("configuration") if isinstance(codec, dict) else None
            bare = codec == "bytes" or (isinstance(codec, dict) and codec.get("name") == "bytes" and not stated)
            if bare and parsed.has_byteorder:  # zarr-python left it out and meant little
                codecs[position] = {"name": "bytes", "configuration": {"endian": "little"}}
    return _changed(document, new)


def _fill(document: Document) -> Document | None:
    """Text, bytes and records with a fill value of 0, or "" where Base64 of all bytes must be."""
    fill, dtype = document.get("fill_value"), document.get("dtype")
    is_bytes = isinstance(dtype, list) or (isinstance(dtype, str) and dtype[1:2] in ("S", "U", "V"))
    if not is_bytes or fill is None or not (fill == "" or (type(fill) is int and fill == 0)):
        return None
    from tessarr.dtypes.parse import from_v2

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data_type = from_v2(dtype, None)
            return _changed(document, {**document, "fill_value": data_type.dump_fill(data_type.default_fill(), 2)})
    except TessarrError:
        return None


def _byteorder(document: Document) -> Document | None:
    def plain(dtype: Any) -> Any:
        if isinstance(dtype, str) and len(dtype) > 1 and dtype[0] in "<>" and (
            dtype[1:] in ("b1", "i1", "u1") or dtype[1] in "SV"
        ):  # fmt: skip
            return "|" + dtype[1:]
        if isinstance(dtype, list):
            return [
                [field[0], plain(field[1]), *field[2:]] if isinstance(field, list) and len(field) > 1 else field
                for field in dtype
            ]
        return dtype

    return _changed(document, {**document, "dtype": plain(document.get("dtype"))}) if "dtype" in document else None


def _filters(document: Document) -> Document | None:
    return {**document, "filters": None} if document.get("filters") == [] else None


def _strings(document: Document) -> Document | None:
    compressor = document.get("compressor")
    if not isinstance(compressor, dict) or compressor.get("id") not in _OBJECT_CODECS or document.get("filters"):
        return None
    return {**document, "filters": [compressor], "compressor": None}


def _codec(document: Document) -> Document | None:
    compressor = document.get("compressor")
    if not isinstance(compressor, dict):
        return None
    drop = {"zstd": {"checksum"}, "blosc": {"typesize"}}.get(str(compressor.get("id")), set())
    if compressor.get("checksum") is True:
        drop = set()  # the stored frames have checksums; readers that know the member may want to keep them
    kept = {name: value for name, value in compressor.items() if name not in drop}
    return _changed(document, {**document, "compressor": kept})


def _nan(document: Document) -> Document | None:
    fill = document.get("fill_value")
    if isinstance(fill, list):
        return _changed(document, {**document, "fill_value": [_word(part) for part in fill]})
    return _changed(document, {**document, "fill_value": _word(fill)}) if "fill_value" in document else None


def _word(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _block(document: Document) -> Document | None:
    if "consolidated_metadata" not in document:
        return None
    return {name: value for name, value in document.items() if name != "consolidated_metadata"}


_V3, _V2, _BOTH = ("zarr.json",), (".zarray",), ("zarr.json", ".zarray")
RULES: dict[str, tuple[tuple[str, ...], str, Rule]] = {
    "LEGACY-ENDIAN": (_V3, "the codec endian is now called bytes", _endian),
    "LEGACY-ORDER": (_V3, 'the orders "C" and "F" are now permutations', _order),
    "LEGACY-NULL": (_V3, "null members must be left out", _null),
    "LEGACY-SHORT": (_V3, "readers of Zarr 3.0 want objects, not names", _short),
    "LEGACY-CHUNK0": (_BOTH, "chunk lengths are positive", _chunk0),
    "LEGACY-STRUCT": (_V3, "structured types are now written as struct, with a byte order", _struct),
    "LEGACY-FILL": (_V2, "the fill value of bytes is Base64, of text a string", _fill),
    "LEGACY-BYTEORDER": (_V2, "single bytes have no byte order", _byteorder),
    "LEGACY-FILTERS": (_V2, "no filters is null, not an empty list", _filters),
    "LEGACY-STRINGS": (_V2, "the codec of objects belongs to the filters", _strings),
    "LEGACY-CODEC": (_V2, "members that numcodecs of zarr-python 2 does not know", _codec),
    "LEGACY-NAN": (_V2, 'NaN and Infinity are written as strings ("NaN")', _nan),
    "LEGACY-BLOCK": ((".zgroup",), "consolidated_metadata is no member of .zgroup", _block),
}
"""Rule id → the documents it is about, what it says, and the mending function."""
