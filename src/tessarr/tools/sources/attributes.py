"""Convert the attributes of other formats to JSON values."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from tessarr.types import JSON


class NotJSONError(TypeError):
    """An attribute has no JSON form."""


def to_json(value: object) -> tuple[JSON, bool]:
    """Convert an attribute's value to JSON; return also whether it holds NaN or infinity, which are spelled as strings.

    Arrays become lists, bytes text, complex numbers pairs, records lists. Raises `NotJSONError` for references and other
    objects that are not values.

    >>> import numpy as np
    >>> to_json(np.array([1, 2], "i2")), to_json(b"degK"), to_json(np.float32("nan"))
    (([1, 2], False), ('degK', False), ('NaN', True))
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "mM":
        return value.astype(str).tolist(), False
    if isinstance(value, np.ndarray):
        # Several formats store a plain value as a list of one; the list is kept nevertheless.
        return _sequence(list(value)) if value.ndim else to_json(value[()])
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value), False
    if isinstance(value, np.void):
        return _sequence(value.item()) if value.dtype.names else (value.tobytes().hex(), False)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return _text(value), False
    if isinstance(value, complex):
        return _sequence([value.real, value.imag])
    if isinstance(value, float) and not math.isfinite(value):
        return ("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"), True
    if value is None or isinstance(value, bool | int | float | str):
        return value, False
    if isinstance(value, list | tuple):
        return _sequence(value)
    if isinstance(value, dict):
        items = {str(name): to_json(item) for name, item in value.items()}
        return {name: item for name, (item, _) in items.items()}, any(special for _, special in items.values())
    raise NotJSONError(f"a {type(value).__name__} is not a JSON value")


def _sequence(values: Any) -> tuple[JSON, bool]:
    items = [to_json(item) for item in values]
    return [item for item, _ in items], any(special for _, special in items)


def _text(value: bytes) -> str:
    try:
        return value.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return value.rstrip(b"\0").decode("latin-1")


def collect(values: Any, place: str, notices: list[str]) -> dict[str, JSON]:
    """Convert attributes, ``(name, value)`` pairs, to JSON; report those left out or spelled differently in
    `notices`.
    """
    attributes: dict[str, JSON] = {}
    for name, value in values:
        try:
            attributes[str(name)], special = to_json(value)
        except NotJSONError as error:
            notices.append(f"{place}: attribute {name!r} is left out: {error}")
            continue
        if special:
            notices.append(
                f"{place}: attribute {name!r} holds NaN or infinity, which JSON cannot; it is stored as a string"
            )
    return attributes


def packing_of(attributes: Mapping[str, object]) -> dict[str, np.generic]:
    """Return the CF attributes that say how numbers are packed, in their own types.

    >>> packing_of({"scale_factor": np.float32(0.5), "units": "K"})
    {'scale_factor': np.float32(0.5)}
    """
    found = {name: np.asarray(attributes[name]) for name in ("scale_factor", "add_offset") if name in attributes}
    return {name: value.reshape(-1)[0] for name, value in found.items() if value.size and value.dtype.kind in "iuf"}


def cf_fill_attribute(fill: object, zarr_format: int) -> JSON | None:
    """Return the stored form of the CF attribute ``_FillValue``; ``None``: the fill value takes its role.

    v3: floats are the base64 of their eight little-endian bytes, as xarray reads and writes them; v1 and v2: a number, and
    nothing for NaN and infinity (there the array's fill value is read as ``_FillValue``).

    Source: zarr-extensions pull request 24; xarray's Zarr backend.

    >>> import numpy as np
    >>> cf_fill_attribute(np.float32("nan"), 3), cf_fill_attribute(np.int16(-1), 3), cf_fill_attribute(np.float32("nan"), 2)
    ('AAAAAAAA+H8=', -1, None)
    """
    scalar = np.asarray(fill)
    if scalar.dtype.kind == "f" and zarr_format == 3:
        return base64.standard_b64encode(struct.pack("<d", float(scalar))).decode()
    if scalar.dtype.kind == "S":
        raw = bytes(scalar[()])
        return base64.standard_b64encode(raw).decode() if zarr_format == 3 else _text(raw)
    value, special = to_json(scalar[()])
    return None if special else value
