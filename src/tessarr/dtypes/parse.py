"""From a document's or a user's description to a `DataType`: `from_v3`, `from_v2`, `from_numpy`.

>>> from_v3("float32"), from_v2("|u1", None), from_numpy("int16").to_json(), from_numpy(str).to_json()
(Float32(), UInt8(), 'int16', 'string')
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr import registry
from tessarr.dtypes.base import DataType
from tessarr.errors import DataTypeValidationError, PickleCodecDisabledError, Problem
from tessarr.types import JSON

DTypeLike: TypeAlias = "npt.DTypeLike | DataType | Mapping[str, JSON]"
"""What users give as ``dtype``."""

_OBJECT_CODECS = {
    "vlen-utf8": "VariableLengthUTF8",
    "vlen-bytes": "VariableLengthBytes",
    "json2": "JSONObjects",
    "msgpack2": "MsgPackObjects",
    "vlen-array": "RaggedArrays",
    "categorize": "Categories",
}
_KINDS = {
    **{f"i{n}": f"int{8 * n}" for n in (1, 2, 4, 8)},
    **{f"u{n}": f"uint{8 * n}" for n in (1, 2, 4, 8)},
    **{f"f{n}": f"float{8 * n}" for n in (2, 4, 8)},
    **{f"c{n}": f"complex{8 * n}" for n in (8, 16)},
    "b1": "bool",
}
_TYPESTR = re.compile(r"([<>|=]?)([biufcmMSUVO])(\d*)(?:\[(\d*)([a-zA-Z]+)\])?")


# -- v3 ------------------------------------------------------------------------------------------------------------


def from_v3(value: JSON) -> DataType:
    """The type that a v3 ``data_type`` names: a string, or an object of ``name`` and ``configuration``.

    Raises `DataTypeValidationError` when the name is unknown or something is wrong with the configuration; the ``loc``
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
        raise _unknown(name)
    try:
        made: DataType = found.from_json(name, configuration)
    except RecursionError as error:
        raise DataTypeValidationError(f"data type {name!r} is nested too deeply") from error
    return made


def _named(value: JSON) -> tuple[str, Mapping[str, JSON] | None]:
    if not isinstance(value, Mapping):
        raise DataTypeValidationError("invalid data_type", expected="a string or an object", got=_short(value))
    problems = [
        Problem((str(key),), "unknown", "not a member of a data type")
        for key in value
        if key not in ("name", "configuration", "must_understand")
    ]
    name, configuration = value.get("name"), value.get("configuration", {})
    if not isinstance(name, str):
        kind = "missing" if "name" not in value else "type"
        problems.append(Problem(("name",), kind, f"must be a string, got {_short(name)}"))
    if not isinstance(configuration, Mapping):
        problems.append(Problem(("configuration",), "type", f"must be an object, got {_short(configuration)}"))
    if not isinstance(value.get("must_understand", True), bool):
        problems.append(Problem(("must_understand",), "type", "must be true or false"))
    if problems or not isinstance(name, str) or not isinstance(configuration, Mapping):
        raise DataTypeValidationError("invalid data_type", problems)
    return name, configuration or None


def _unknown(name: str) -> DataTypeValidationError:
    typestr = _TYPESTR.fullmatch(name)
    if typestr and (typestr[1] or typestr[3]):
        try:
            v3_name = from_v2((typestr[1] or "<") + name.lstrip("<>|="), None).to_json()
        except DataTypeValidationError:
            v3_name = None
        means = f"{name!r} is a v2 typestr" + (f"; in v3 it is {v3_name!r}" if v3_name else "")
        return DataTypeValidationError(
            f"invalid data type {name!r}",
            expected="a v3 name; v3 data types carry no byte order, the bytes codec does",
            hint=f"{means}, with the byte order in the configuration of the bytes codec",
        )
    return DataTypeValidationError(
        f"unknown data type {_short(name)}",
        hint="If another package defines it, install that package (entry points in the group 'tessarr.data_type'), or "
        "register a class: tessarr.registry.register('data_type', name, cls)",
    )


# -- v2 ------------------------------------------------------------------------------------------------------------


def from_v2(dtype: JSON, filters: Sequence[Mapping[str, JSON]] | None) -> DataType:
    """The type of a v1 or v2 ``dtype``; `filters` is needed for ``"|O"``, where the first object codec decides.

    Raises `PickleCodecDisabledError` when any filter is ``pickle``, and `DataTypeValidationError` for anything that is
    no data type: byte order missing, ``M8`` without unit, ``"|O"`` without object codec.
    """
    filters = filters or ()
    if any(item.get("id") == "pickle" for item in filters):
        raise _pickle_refused()
    if isinstance(dtype, str):
        return _from_object_filter(filters) if dtype in ("|O", "|O8", "O") else _from_typestr(dtype)
    if isinstance(dtype, Sequence):
        from tessarr.dtypes.struct import Struct

        try:
            return Struct.from_v2(dtype, lambda field: from_v2(field, None))
        except RecursionError as error:
            raise DataTypeValidationError("a structured dtype is nested too deeply") from error
    raise DataTypeValidationError("invalid v2 dtype", expected='a typestr such as "<f8", or a list', got=_short(dtype))


def _pickle_refused() -> PickleCodecDisabledError:
    return PickleCodecDisabledError(
        "refused to unpickle data: it can run any code",
        codec="pickle",
        hint="If you trust the data, open it with the software that wrote it and store it again with another object "
        "codec, such as vlen-utf8 or json2",
    )


def _from_object_filter(filters: Sequence[Mapping[str, JSON]]) -> DataType:
    for item in filters:
        name = _OBJECT_CODECS.get(str(item.get("id")))
        if name is not None:
            return _object_type(name, item)
    raise DataTypeValidationError(
        'v2 dtype "|O" without an object codec',
        expected=f"one of {', '.join(_OBJECT_CODECS)} in filters",
        got=str([item.get("id") for item in filters]),
    )


def _object_type(name: str, configuration: Mapping[str, JSON]) -> DataType:
    from tessarr.dtypes import variable

    found = getattr(variable, name)
    made: DataType = found.from_filter(configuration) if hasattr(found, "from_filter") else found()
    return made


def _from_typestr(text: str) -> DataType:
    found = _TYPESTR.fullmatch(text)
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
    name = _KINDS.get(kind + size)
    if name is None:
        raise _bad_typestr(text, f"one of {', '.join(_KINDS)} after the byte order")
    made = registry.get("data_type", name)
    return made() if single else made(endianness=endianness)  # type: ignore[misc,no-any-return]


def _bare_name(text: str) -> DataType:
    """TensorStore's v2 spelling of types that NumPy lacks: the v3 name."""
    made = registry.get("data_type", text) if re.fullmatch(r"[a-z][a-z0-9_]+", text) else None
    if made is None or made.__module__ != "tessarr.dtypes.small":
        raise _bad_typestr(text, 'a typestr such as "<f8", "|u1", "|S12" or "<M8[ns]"')
    return made().with_byteorder("<")  # type: ignore[no-any-return]


def _bad_typestr(text: str, expected: str) -> DataTypeValidationError:
    return DataTypeValidationError(f"invalid v2 dtype {_short(text)}", expected=expected)


def _sized(kind: str, text: str, size: str, endianness: Any = None) -> DataType:
    from tessarr.dtypes import raw

    if not size or len(size) > 10:
        raise _bad_typestr(text, "a length after the kind, at least 1 and below 2 GiB")
    if kind == "U":
        return raw.FixedLengthUTF32(length=int(size), endianness=endianness)
    return raw.NullTerminatedBytes(length=int(size)) if kind == "S" else raw.RawBytes(length=int(size))


def _time(kind: str, text: str, size: str, count: str | None, unit: str | None, endianness: Any) -> DataType:
    from tessarr.dtypes import time

    if size != "8" or unit is None or unit not in time.UNITS[:-1] or len(count or "") > 10 or count == "0":
        raise _bad_typestr(text, f"8 bytes and a unit, such as {kind}8[ns]; units are {', '.join(time.UNITS[:-1])}")
    made = time.DateTime64 if kind == "M" else time.TimeDelta64
    return made(unit=unit, scale_factor=int(count or 1), endianness=endianness)


# -- users ---------------------------------------------------------------------------------------------------------


def from_numpy(dtype: DTypeLike, *, object_codec: str | None = None) -> DataType:
    """The type that a user means.

    A `DataType` is taken as it is; a string is a v3 name (``"bfloat16"``, ``"string"``, ``"r24"``) or else a NumPy name
    (``"<i4"``, ``"U7"``, ``"datetime64[ns]"``); a mapping is a v3 object. `str` and `bytes`, and ``U`` and ``S``
    without a length, are the variable-length types. ``object`` needs `object_codec`, the numcodecs id of a v2 filter
    (for ragged arrays ``"vlen-array:<i4"``). A byte order is kept. NumPy's aligned records are packed.

    Raises `DataTypeValidationError` when there is no such type.
    """
    if isinstance(dtype, DataType):
        return dtype
    if isinstance(dtype, Mapping) and "formats" not in dtype:  # NumPy describes records by a dict with formats
        return from_v3(dtype)
    if dtype is str or dtype is bytes:
        return _object_type(_OBJECT_CODECS["vlen-utf8" if dtype is str else "vlen-bytes"], {})
    if dtype is None:  # np.dtype(None) would be float64
        raise DataTypeValidationError("no data type given", expected="a dtype, such as 'float32'", got="None")
    if isinstance(dtype, str) and (re.match(r"r-?\d", dtype) or _is_v3_name(dtype)):
        return from_v3(dtype)
    try:
        native = np.dtype(dtype)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        if isinstance(dtype, str) and not _TYPESTR.fullmatch(dtype):
            raise _unknown(dtype) from error
        raise DataTypeValidationError(f"not a data type: {_short(dtype)}", got=str(error)) from error
    return _from_native(native, object_codec)


def _is_v3_name(text: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9._-]+", text) is not None and registry.get("data_type", text) is not None


def _from_native(native: np.dtype[Any], object_codec: str | None) -> DataType:
    if native.type.__module__ == "ml_dtypes":
        names = {"complex32": "complex_float16", "bcomplex32": "complex_bfloat16"}
        made = from_v3(names.get(native.name, native.name))
        return made.with_byteorder(">" if native.byteorder == ">" else "=")
    if native.kind == "T":
        return _object_type(_OBJECT_CODECS["vlen-utf8"], {})
    if native.kind == "O":
        return _from_object_codec(object_codec)
    if native.fields is not None:
        from tessarr.dtypes.struct import Field, Struct

        bases = [(name, native[name].base, native[name].shape) for name in native.names or ()]
        return Struct(fields=[Field(name, _from_native(base, None), shape) for name, base, shape in bases])
    if native.kind in "US" and native.itemsize == 0:
        return _object_type(_OBJECT_CODECS["vlen-utf8" if native.kind == "U" else "vlen-bytes"], {})
    if native.kind in "mM" and np.datetime_data(native)[0] == "generic":
        from tessarr.dtypes import time

        kind = time.DateTime64 if native.kind == "M" else time.TimeDelta64
        return kind().with_byteorder(">" if native.byteorder == ">" else "=")
    if native.subdtype is not None or (native.str[1:] not in _KINDS and native.kind not in "SUVmM"):
        raise DataTypeValidationError(
            f"Zarr has no data type for the NumPy dtype {native!r}",
            hint="Cast the data first, for example to float64",
        )
    return _from_typestr(native.str)


def _from_object_codec(object_codec: str | None) -> DataType:
    name, _, argument = (object_codec or "").partition(":")
    if name == "pickle":
        raise _pickle_refused()
    if name in _OBJECT_CODECS and (argument or name != "vlen-array"):
        return _object_type(_OBJECT_CODECS[name], {"id": name, "dtype": argument})
    raise DataTypeValidationError(
        "the NumPy dtype object says nothing about what the elements are",
        got=f"object_codec={object_codec!r}",
        hint="Use dtype=str for text or dtype=bytes for bytes; for Zarr v2 name an object_codec: "
        f"{', '.join(_OBJECT_CODECS)} (ragged arrays: 'vlen-array:<i4')",
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
