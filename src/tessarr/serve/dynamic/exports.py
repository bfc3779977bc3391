"""Encode elements as files: NPY, CSV, JSON, PNG, and raw bytes. Pure.

Sources: NumPy's format NPY 1.0; RFC 4180 (CSV); RFC 8259 (JSON: NaN, which it lacks, is null, infinity a text).
"""

from __future__ import annotations

import base64
import csv
import io
import itertools
import json
import re
from collections.abc import Mapping, Sequence

import numpy as np

from tessarr.serve.dynamic.refusal import malformed, too_large
from tessarr.tools.picture import COLOUR_MAPS, colours, numbers_of, png
from tessarr.types import JSON, AnyArray, AnyDType

MAX_ROWS = 1_000_000
"""Elements of a CSV or JSON document."""
KINDS = {
    "npy": "application/x-npy",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "raw": "application/octet-stream",
}
"""Name of a format, as in URLs → media type."""


def numpy_name(dtype: AnyDType) -> str:
    """Return NumPy's name of a type with little-endian elements; ``|O`` for objects and text of variable length.

    >>> numpy_name(np.dtype(">i4")), numpy_name(np.dtype("M8[s]")), numpy_name(np.dtype([("a", ">i2"), ("b", "f4")]))
    ('<i4', '<M8[s]', '|V6')
    """
    return "|O" if dtype.kind in "OT" else dtype.newbyteorder("<").str


def little_endian(values: AnyArray) -> AnyArray:
    """Return the values in C order with little-endian elements."""
    return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False)).reshape(values.shape)


def raw(values: AnyArray) -> bytes:
    """Encode values as their bytes. Raises `Refusal` for objects and text of variable length, which have none."""
    if values.dtype.kind in "OT":
        raise malformed("elements of this type have no bytes of equal length", "Use .json or .csv")
    return little_endian(values).tobytes()


def npy(values: AnyArray) -> bytes:
    """Encode values as a file of NumPy, without pickle."""
    if values.dtype.kind in "OT":
        values = np.array(values.ravel().tolist(), dtype=str).reshape(values.shape) if _is_text(values) else values
    if values.dtype.hasobject:
        raise malformed("elements of this type need pickle in NPY", "Use .json or .csv")
    file = io.BytesIO()
    np.lib.format.write_array(file, values, version=None, allow_pickle=False)
    return file.getvalue()


def csv_table(values: AnyArray, names: Sequence[str], coordinates: Sequence[AnyArray], name: str) -> bytes:
    """Encode values as a table: a column per dimension with its coordinates, and one with the elements."""
    _check_rows(values)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    fields = values.dtype.names
    writer.writerow([*names, *([f"{name}.{field}" for field in fields] if fields else [name])])
    columns = [
        [text_of(value) for value in column.tolist()] if column.dtype.kind != "M" else _iso(column)
        for column in coordinates
    ]
    elements = _iso(values) if values.dtype.kind in "mM" else values.ravel().tolist()
    for labels, element in zip(itertools.product(*columns), elements, strict=True):
        cells = element if fields else (element,)
        writer.writerow([*labels, *map(text_of, cells)])
    return file.getvalue().encode()


def document(values: AnyArray) -> JSON:
    """Convert values to nested lists of JSON."""
    _check_rows(values)
    if values.dtype.kind in "mM":
        flat: list[JSON] = [text or None for text in _iso(values)]
        return _nested(flat, values.shape)
    if values.dtype.kind in "biu":
        plain: JSON = values.tolist()
        return plain
    return _nested([json_of(element) for element in values.ravel().tolist()], values.shape)


def dumps(content: Mapping[str, JSON]) -> bytes:
    """Encode a document; NaN is refused, because `json_of` left none."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def picture(values: AnyArray, options: Mapping[str, str]) -> bytes:
    """Draw a plane of numbers, or a plane of 3 or 4 bytes, as PNG. Raises `Refusal` for other types and shapes."""
    if values.dtype == np.uint8 and values.ndim == 3 and values.shape[2] in (3, 4):
        opaque = np.full((*values.shape[:2], 1), 255, np.uint8)
        return png(values if values.shape[2] == 4 else np.concatenate([values, opaque], axis=2), level=6)
    if values.ndim != 2 or 0 in values.shape:
        raise malformed(
            f"a picture has two dimensions, and the selection has the shape {list(values.shape)}",
            "Select one index along the other dimensions",
        )
    try:
        numbers = numbers_of(values)
    except TypeError as error:
        raise malformed(str(error), "Use .json or .csv") from error
    name = options.get("cmap", "viridis")
    if name not in COLOUR_MAPS:
        raise malformed(f"unknown colour map {name[:40]!r}", f"Known: {', '.join(COLOUR_MAPS)}")
    return png(colours(numbers, limits=parse_limits(options.get("limits")), map_name=name), level=6)


def parse_limits(text: str | None) -> tuple[float, float] | None:
    """Parse ``low,high``; ``None`` for none. Raises `Refusal` for other text."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*([^,\s]+)\s*,\s*([^,\s]+)\s*", text)
    try:
        limits = (float(found[1]), float(found[2])) if found is not None else (np.nan, np.nan)
    except ValueError:
        limits = (np.nan, np.nan)
    if not np.isfinite(limits).all():
        raise malformed(f"limits must be two numbers, got {text[:40]!r}", "limits=0,100")
    return limits


def text_of(element: object) -> str:
    """Write one element as text: numbers so that they can be read again exactly, nothing for NaN."""
    if isinstance(element, float):
        return "" if element != element else repr(element)
    if isinstance(element, bytes):
        return element.decode("utf-8", "backslashreplace")
    return "" if element is None else str(element)


def json_of(element: object) -> JSON:
    """Convert one element to JSON: NaN is null, bytes that are not text are Base64, complex numbers are pairs."""
    if element is None or isinstance(element, bool | int | str):
        return element
    if isinstance(element, float):
        if element != element:
            return None
        return element if abs(element) != float("inf") else ("Infinity" if element > 0 else "-Infinity")
    if isinstance(element, complex):
        return [json_of(element.real), json_of(element.imag)]
    if isinstance(element, bytes):
        try:
            return element.decode("utf-8")
        except UnicodeDecodeError:
            return base64.b64encode(element).decode()
    if isinstance(element, tuple | list):
        return [json_of(item) for item in element]
    if isinstance(element, np.ndarray):
        return [json_of(item) for item in element.tolist()]
    if isinstance(element, np.generic):
        return json_of(element.item()) if not isinstance(element.item(), np.generic) else str(element)
    return str(element)


def _iso(values: AnyArray) -> list[str]:
    """Write times and durations: ISO 8601, a duration as a number of its unit, nothing for NaT."""
    gone = np.isnat(values).ravel()
    if values.dtype.kind == "m":
        return [
            "" if lost else str(number)
            for number, lost in zip(values.astype(np.int64).ravel().tolist(), gone, strict=True)
        ]
    texts = np.datetime_as_string(values.ravel()) if values.size else np.empty(0, str)
    return ["" if lost else str(text) for text, lost in zip(texts.tolist(), gone, strict=True)]


def _nested(flat: list[JSON], shape: Sequence[int]) -> JSON:
    if not shape:
        return flat[0]
    for length in reversed(shape[1:]):
        flat = (
            [flat[start : start + length] for start in range(0, len(flat), length)]
            if length
            else [[] for _ in range(int(np.prod(shape[:-1])))]
        )
    return flat


def _is_text(values: AnyArray) -> bool:
    return values.dtype.kind == "T" or all(isinstance(item, str) for item in values.ravel().tolist())


def _check_rows(values: AnyArray) -> None:
    if values.size > MAX_ROWS:
        raise too_large(
            f"the slice has {values.size} elements, more than {MAX_ROWS} for text", "Use .npy, or select less"
        )
