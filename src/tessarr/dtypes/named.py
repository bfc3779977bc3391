"""Look up data types by name: v3 names and objects, and the typestrs of v2.

>>> from_v3("float32"), from_typestr("|u1")
(Float32(), UInt8())
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tessarr import registry
from tessarr.dtypes.base import DataType
from tessarr.errors import DataTypeValidationError, Problem
from tessarr.types import JSON

KINDS = {
    **{f"i{n}": f"int{8 * n}" for n in (1, 2, 4, 8)},
    **{f"u{n}": f"uint{8 * n}" for n in (1, 2, 4, 8)},
    **{f"f{n}": f"float{8 * n}" for n in (2, 4, 8)},
    **{f"c{n}": f"complex{8 * n}" for n in (8, 16)},
    "b1": "bool",
}
TYPESTR = re.compile(r"([<>|=]?)([biufcmMSUVO])(\d*)(?:\[(\d*)([a-zA-Z]+)\])?")


def from_v3(value: JSON) -> DataType:
    """Parse a v3 ``data_type``: a string, or an object of ``name`` and ``configuration``.

    Raises `DataTypeValidationError` when the name is unknown or the configuration is invalid; the ``loc``
    of its problems is relative to the value.
    """
    if isinstance(value, str):
        name, configuration = value, None
    else:
        name, configuration = _named(value)
    if re.match(r"r-?\d", name):
        from tessarr.dtypes.raw import RawBytes

        return RawBytes.from_json(name, configuration)
    found = registry.get("data_type", name)
    if found is None:
        raise unknown(name)
    try:
        made: DataType = found.from_json(name, configuration)
    except RecursionError as error:
        raise DataTypeValidationError(f"data type {name!r} is nested too deeply") from error
    return made


def _named(value: JSON) -> tuple[str, Mapping[str, JSON] | None]:
    if not isinstance(value, Mapping):
        raise DataTypeValidationError("invalid data_type", expected="a string or an object", got=short(value))
    problems = [
        Problem((str(key),), "unknown", "not a member of a data type")
        for key in value
        if key not in ("name", "configuration", "must_understand")
    ]
    name, configuration = value.get("name"), value.get("configuration", {})
    if not isinstance(name, str):
        kind = "missing" if "name" not in value else "type"
        problems.append(Problem(("name",), kind, f"must be a string, got {short(name)}"))
    if not isinstance(configuration, Mapping):
        problems.append(Problem(("configuration",), "type", f"must be an object, got {short(configuration)}"))
    if not isinstance(value.get("must_understand", True), bool):
        problems.append(Problem(("must_understand",), "type", "must be true or false"))
    if problems or not isinstance(name, str) or not isinstance(configuration, Mapping):
        raise DataTypeValidationError("invalid data_type", problems)
    return name, configuration or None


def unknown(name: str) -> DataTypeValidationError:
    """Make the error for an unknown name."""
    typestr = TYPESTR.fullmatch(name)
    if typestr and (typestr[1] or typestr[3]):
        try:
            v3_name = from_typestr((typestr[1] or "<") + name.lstrip("<>|=")).to_json()
        except DataTypeValidationError:
            v3_name = None
        means = f"{name!r} is a v2 typestr" + (f"; in v3 it is {v3_name!r}" if v3_name else "")
        return DataTypeValidationError(
            f"invalid data type {name!r}",
            expected="a v3 name; in v3 the bytes codec has the byte order, not the data type",
            hint=f"{means}, with the byte order in the configuration of the bytes codec",
        )
    return DataTypeValidationError(
        f"unknown data type {short(name)}",
        hint="If another package defines it, install that package (entry points in the group 'tessarr.data_type'), or "
        "register a class: tessarr.registry.register('data_type', name, cls)",
    )


def from_typestr(text: str) -> DataType:
    """Parse a v2 typestr. Raises `DataTypeValidationError`."""
    found = TYPESTR.fullmatch(text)
    if found is None:
        return _bare_name(text)
    order, kind, size, count, unit = found.groups()
    if order in ("", "="):
        raise _bad_typestr(text, "a byte order first: '<', '>', or '|' where it does not apply")
    if unit is not None and kind not in "mM":
        raise _bad_typestr(text, "a unit only with M and m")
    if kind in "SV":
        return _sized(kind, text, size)
    single = kind + size in ("b1", "i1", "u1")
    if order == "|" and not single:
        raise _bad_typestr(text, "'<' or '>' as byte order: elements of several bytes have one")
    endianness = "little" if order == "<" else "big"
    if kind == "U":
        return _sized(kind, text, size, endianness)
    if kind in "mM":
        return _time(kind, text, size, count, unit, endianness)
    name = KINDS.get(kind + size)
    if name is None:
        raise _bad_typestr(text, f"one of {', '.join(KINDS)} after the byte order")
    made = registry.get("data_type", name)
    return made() if single else made(endianness=endianness)  # type: ignore[misc,no-any-return]


def _bare_name(text: str) -> DataType:
    """Parse TensorStore's v2 spelling of types that NumPy lacks: the v3 name."""
    made = registry.get("data_type", text) if re.fullmatch(r"[a-z][a-z0-9_]+", text) else None
    if made is None or made.__module__ != "tessarr.dtypes.small":
        raise _bad_typestr(text, 'a typestr such as "<f8", "|u1", "|S12" or "<M8[ns]"')
    return made().with_byteorder("<")  # type: ignore[no-any-return]


def _bad_typestr(text: str, expected: str) -> DataTypeValidationError:
    return DataTypeValidationError(f"invalid v2 dtype {short(text)}", expected=expected)


def _sized(kind: str, text: str, size: str, endianness: Any = None) -> DataType:
    from tessarr.dtypes import raw

    if not size or len(size) > 10:
        raise _bad_typestr(text, "a length after the kind, at least 1 and below 2 GiB")
    if kind == "U":
        return raw.FixedLengthUTF32(length=int(size), endianness=endianness)
    return raw.NullTerminatedBytes(length=int(size)) if kind == "S" else raw.RawBytes(length=int(size))


def _time(kind: str, text: str, size: str, count: str | None, unit: str | None, endianness: Any) -> DataType:
    from tessarr.dtypes import time

    unit = unit or "generic"  # numcodecs and zarr-python read and write such types
    if size != "8" or unit not in time.UNITS or len(count or "") > 10 or count == "0":
        raise _bad_typestr(text, f"8 bytes and a unit, such as {kind}8[ns]; units are {', '.join(time.UNITS[:-1])}")
    made = time.DateTime64 if kind == "M" else time.TimeDelta64
    return made(unit=unit, scale_factor=int(count or 1), endianness=endianness)


def short(value: object) -> str:
    """Return `repr` of a value, truncated where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
