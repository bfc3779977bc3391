"""Correct documents of known writers that violate their specification and cannot be read otherwise.

A rule is a pure function from a parsed document to the corrected document, or ``None`` when the rule does not apply. The
parsers apply the rules only when a document is invalid, and warn; `tessarr.tools.check` reports the same rules, and
`tessarr.tools.repair` writes the corrected documents.

>>> mixed = {"shape": [4, 4], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, [1, 3]]}}}
>>> new, said = readable("zarr.json", mixed)
>>> new["chunk_grid"]["name"], said
('rectilinear', ['a regular grid with lists of lengths is a rectilinear one'])

`zarr_python_reads` corrects what zarr-python 3.4 corrects and tessarr's own surface refuses; `tessarr.as_zarr` asks for it.

Source: zarr-python 3.2 (grids that mix lengths and lists), 2 and 3 (``chunks=False`` on axes of length 0);
codecs of objects as compressor; the faulty schemas and examples of
zarr-extensions (packbits, cast_value, zstd); a writer for R (blosc).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[Document], Document | None]

_PADDING = {"start_byte": "first_byte", "end_byte": "last_byte"}
_BITS = {"start_bit": "first_bit", "end_bit": "last_bit"}


def readable(name: str, document: Document) -> tuple[Document, list[str]]:
    """Apply the rules to the document called `name`; return it and descriptions of the corrections."""
    said: list[str] = []
    for names, say, rule in RULES.values():
        new = rule(document) if name in names else None
        if new is not None:
            document = new
            said.append(say)
    return document, said


def copied(document: Document, *fields: str) -> Document:
    """Return the document with copies of some members, for changing them."""
    return {**document, **{field: copy.deepcopy(document[field]) for field in fields if field in document}}


def changed(old: Document, new: Document) -> Document | None:
    """Return `new`, or ``None`` when it equals `old`."""
    return None if _same(old, new) else new


def _same(a: object, b: object) -> bool:
    """Compare values; ``0`` and ``false`` differ, and NaN equals NaN."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    number = isinstance(a, float) and isinstance(b, float)  # one of them may be a FloatLiteral
    return bool((number or type(a) is type(b)) and (a == b or (a != a and b != b)))


def codec_lists(document: Document) -> Iterator[list[Any]]:
    """Yield every list of codecs in a v3 array, those of shards included."""
    waiting = [document.get("codecs")]
    while waiting:
        codecs = waiting.pop()
        if isinstance(codecs, list):
            yield codecs
            for codec in codecs:
                inner = codec.get("configuration") if isinstance(codec, dict) else None
                if isinstance(inner, dict):
                    waiting += [inner.get("codecs"), inner.get("index_codecs")]


def chunk_lengths(document: Document) -> Document | None:
    """Replace chunk lengths ``false`` and 0 by 1 on an axis of length 0, which has no chunks."""
    new = copied(document, "chunks", "chunk_grid")
    shape = document.get("shape")
    lengths = new["chunks"] if "chunks" in new else grid_lengths(new, "regular", "chunk_shape")
    if lengths is None:
        lengths = grid_lengths(new, "rectilinear", "chunk_shapes")
    if not isinstance(shape, list) or not isinstance(lengths, list) or len(shape) != len(lengths):
        return None
    for axis, length in enumerate(lengths):
        if isinstance(length, list) and shape[axis] == 0:
            lengths[axis] = [edge for edge in length if edge is not False and edge != 0]
        elif shape[axis] == 0 and type(length) in (bool, int) and not length:
            lengths[axis] = 1
    return changed(document, new)


def grid_lengths(document: Document, name: str, member: str) -> object:
    grid = document.get("chunk_grid")
    inner = grid.get("configuration") if isinstance(grid, dict) and grid.get("name") == name else None
    return inner.get(member) if isinstance(inner, dict) else None


def mixed_grid(document: Document) -> Document | None:
    """Read a regular grid in which some axes list their chunks as a rectilinear one, whose layout the chunks have."""
    lengths = grid_lengths(document, "regular", "chunk_shape")
    if not isinstance(lengths, list) or not any(isinstance(length, list) for length in lengths):
        return None
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": copy.deepcopy(lengths)}}
    return {**document, "chunk_grid": grid}


def plain_orders(dtype: object) -> object:
    """Remove the byte order of single bytes from a v2 dtype.

    >>> plain_orders([["a", "<u1"], ["b", "<i4"]])
    [['a', '|u1'], ['b', '<i4']]
    """
    if isinstance(dtype, str):
        single = dtype[:1] in ("<", ">") and (dtype[1:] in ("b1", "i1", "u1") or dtype[1:2] in ("S", "V"))
        return f"|{dtype[1:]}" if single else dtype
    if not isinstance(dtype, list):
        return dtype
    return [
        [field[0], plain_orders(field[1]), *field[2:]] if isinstance(field, list) and len(field) > 1 else field
        for field in dtype
    ]


def object_codec(document: Document) -> Document | None:
    """Move an object codec from the compressor to the filters."""
    from tessarr.codecs.numcodecs.table import OBJECT_CODECS

    compressor = document.get("compressor")
    if not isinstance(compressor, dict) or compressor.get("id") not in OBJECT_CODECS or document.get("filters"):
        return None
    return {**document, "filters": [compressor], "compressor": None}


def boolean_fill(document: Document) -> Document | None:
    """Replace 0 and 1 by false and true in the fill value of booleans."""
    if document.get("data_type") != "bool" or type(document.get("fill_value")) is not int:
        return None
    return {**document, "fill_value": bool(document["fill_value"])} if document["fill_value"] in (0, 1) else None


def order_of_text(document: Document) -> Document | None:
    """Add the byte order of fixed-length text, which was written as little-endian, to the ``bytes`` codec."""
    kind = document.get("data_type")
    if not isinstance(kind, dict) or kind.get("name") != "fixed_length_utf32":
        return None
    new = copied(document, "codecs")
    for codecs in codec_lists(new):
        for at, codec in enumerate(codecs):
            if codec == "bytes" or (
                isinstance(codec, dict) and codec.get("name") == "bytes" and not codec.get("configuration")
            ):
                codecs[at] = {"name": "bytes", "configuration": {"endian": "little"}}
    return changed(document, new)


def codec_words(document: Document) -> Document | None:
    """Replace members and values of codecs that follow faulty schemas and examples of the registry."""
    new = copied(document, "codecs")
    for codecs in codec_lists(new):
        for codec in codecs:
            inner = codec.get("configuration") if isinstance(codec, dict) else None
            convert = _WORDS.get(str(codec.get("name"))) if isinstance(codec, dict) else None
            if convert is not None and isinstance(inner, dict):
                codec["configuration"] = convert(inner)
    return changed(document, new)


def _packbits(inner: Document) -> Document:
    named = {_BITS.get(name, name): value for name, value in inner.items()}
    if isinstance(named.get("padding_encoding"), str):
        named["padding_encoding"] = _PADDING.get(named["padding_encoding"], named["padding_encoding"])
    return named


def _zstd(inner: Document) -> Document:
    level = inner.get("level")
    return {**inner, "level": int(level)} if isinstance(level, float) and level.is_integer() else inner


def _blosc(inner: Document) -> Document:
    """Remove a ``level`` beside ``clevel``, which an R library writes; the compressed bytes do not depend on it."""
    return {name: value for name, value in inner.items() if name != "level"} if "clevel" in inner else inner


def _cast_value(inner: Document) -> Document:
    def plain(value: object) -> Any:
        if isinstance(value, list):
            return [plain(item) for item in value]
        return "Infinity" if value == "+Infinity" else value

    scalars = inner.get("scalar_map")
    if not isinstance(scalars, dict):
        return inner
    return {**inner, "scalar_map": {name: plain(pairs) for name, pairs in scalars.items()}}


_WORDS: dict[str, Callable[[Document], Document]] = {
    "blosc": _blosc,
    "packbits": _packbits,
    "zstd": _zstd,
    "cast_value": _cast_value,
}

_HINT = (
    "The array holds only its fill value: to choose its chunks, recreate it by `zarr.from_array(array"
    ".store, name=array.path, data=array, chunks=<chunk shape>, overwrite=True, write_data=False)`; to keep these, store them "
    "by `array.resize(array.shape)`. Then call `zarr.consolidate_metadata` on groups whose consolidated metadata name it."
)


_MIXED = (
    "The stored chunk grid is named 'regular', but its chunk shape lists chunk edge lengths in dimensions {axes}, which only a "
    "rectilinear chunk grid can declare. It is read as that rectilinear chunk grid; `array.resize(array.shape)` stores it."
)


def zarr_python_reads(name: str, document: Document) -> tuple[Document, str]:
    """Read the document called `name` as zarr-python 3.4 does: chunk lengths ``true`` as 1, ``4.0`` as 4, and 0 as 1 or,
    around shards, the length of an inner chunk; v2's single bytes without byte order.

    Returns the document and the warning that zarr-python issues, or "" where it issues none.
    """
    new = copied(document, "chunks", "chunk_grid", "codecs")
    if name == ".zarray" and "dtype" in new:
        new["dtype"] = plain_orders(new["dtype"])
    inner = [
        codec["configuration"]["chunk_shape"]
        for codecs in codec_lists(new)
        for codec in codecs
        if isinstance(codec, dict)
        and codec.get("name") == "sharding_indexed"
        and isinstance(codec.get("configuration"), dict)
        and isinstance(codec["configuration"].get("chunk_shape"), list)
    ]
    for lengths in inner:
        lengths[:] = [1 if length is True else length for length in lengths]
    said = ""
    shape, lengths = document.get("shape"), new.get("chunks") if name == ".zarray" else None
    if name == "zarr.json":
        lengths = grid_lengths(new, "regular", "chunk_shape")
    if isinstance(shape, list) and isinstance(lengths, list) and len(shape) == len(lengths):
        said = _read_lengths(lengths, shape, inner[0] if inner else [1] * len(shape))
        listed = [axis for axis, length in enumerate(lengths) if isinstance(length, list)]
        if 0 < len(listed) < len(lengths):
            new = mixed_grid(new) or new
            said = f"{said} {_MIXED.format(axes=listed)}".strip()
    edges = grid_lengths(new, "rectilinear", "chunk_shapes")
    if isinstance(edges, list):
        edges[:] = [[_edges(edge) for edge in axis] if isinstance(axis, list) else axis for axis in edges]
    return changed(document, new) or document, said


def _read_lengths(lengths: list[object], shape: list[object], shortest: list[object]) -> str:
    """Replace chunk lengths ``true`` and 0; return the warning for axes with elements that had 0."""
    stored, readings = json.dumps(lengths), []
    for axis, length in enumerate(lengths):
        if length is True:
            lengths[axis] = 1
        elif type(length) in (bool, int) and not length and axis < len(shortest):
            lengths[axis] = unit = shortest[axis]
            if shape[axis]:
                what = "1" if unit == 1 else f"{unit}, the inner chunk size"
                readings.append(f"{json.dumps(length)} in dimension {axis} as {what}")
    if not readings:
        return ""
    return (
        f"The stored chunk shape {stored} is invalid: chunk sizes must be integers of at least 1. It is read as "
        f"{json.dumps(lengths)}, reading {'; '.join(readings)}, as no chunk can be stored under a chunk size of 0. {_HINT}"
    )


def _edges(edge: object) -> object:
    if isinstance(edge, list) and len(edge) == 2:
        return [_edges(edge[0]), edge[1]]
    if edge is True:
        return 1
    return int(edge) if isinstance(edge, float) and edge >= 1 and edge == int(edge) else edge


RULES: dict[str, tuple[tuple[str, ...], str, Rule]] = {
    "LEGACY-GRID": (("zarr.json",), "a regular grid with lists of lengths is a rectilinear one", mixed_grid),
    "LEGACY-CHUNK0": (("zarr.json", ".zarray"), "chunk lengths are positive integers", chunk_lengths),
    "LEGACY-WORDS": (("zarr.json",), "members of codecs that only a faulty schema, example or writer has", codec_words),
    "LEGACY-BOOLFILL": (("zarr.json",), "the fill value of booleans is true or false", boolean_fill),
    "LEGACY-TEXTORDER": (("zarr.json",), "text of fixed length has a byte order", order_of_text),
    "LEGACY-STRINGS": ((".zarray",), "the codec of objects belongs to the filters", object_codec),
}
"""Rule id → names of its documents, its description, and the correcting function."""
