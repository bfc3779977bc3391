"""Make a `DataType` from a document's or a user's description: `from_v3`, `from_v2`, `from_numpy`.

>>> from_v3("float32"), from_v2("|u1", None), from_numpy("int16").to_json(), from_numpy(str).to_json()
(Float32(), UInt8(), 'int16', 'string')
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tessarr import registry
from tessarr.common.warn import warn_as_zarr_python
from tessarr.dtypes.base import DataType
from tessarr.dtypes.element import Element
from tessarr.dtypes.named import KINDS, TYPESTR, from_typestr, from_v3, short, unknown
from tessarr.errors import DataTypeValidationError, PickleCodecDisabledError
from tessarr.types import JSON, AnyDType, ZarrFormat

if TYPE_CHECKING:
    import numpy.typing as npt

DTypeLike: TypeAlias = "npt.DTypeLike | DataType | Mapping[str, JSON]"
"""Values that users may pass as ``dtype``."""

_OBJECT_CODECS = {
    "vlen-utf8": "VariableLengthUTF8",
    "vlen-bytes": "VariableLengthBytes",
    "json2": "JSONObjects",
    "msgpack2": "MsgPackObjects",
    "vlen-array": "RaggedArrays",
    "categorize": "Categories",
}


# -- v2 ------------------------------------------------------------------------------------------------------------


def from_v2(dtype: JSON, filters: Sequence[Mapping[str, JSON]] | None) -> DataType:
    """Parse a v1 or v2 ``dtype``; `filters` is needed for ``"|O"``, where the first object codec decides.

    Raises `PickleCodecDisabledError` when any filter is ``pickle``, and `DataTypeValidationError` for an invalid data
    type: byte order missing, ``"|O"`` without object codec.
    """
    filters = filters or ()
    if any(item.get("id") == "pickle" for item in filters):
        raise _pickle_refused()
    if isinstance(dtype, str):
        return _from_object_filter(filters) if dtype in ("|O", "|O8", "O") else from_typestr(dtype)
    if isinstance(dtype, Sequence):
        from tessarr.dtypes.struct import Struct

        try:
            return Struct.from_v2(dtype, lambda field: from_v2(field, None))
        except RecursionError as error:
            raise DataTypeValidationError("a structured dtype is nested too deeply") from error
    raise DataTypeValidationError("invalid v2 dtype", expected='a typestr such as "<f8", or a list', got=short(dtype))


def _pickle_refused() -> PickleCodecDisabledError:
    return PickleCodecDisabledError(
        "refused to unpickle data: unpickling can run any code",
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
    made: DataType = found.from_filter(configuration, from_v2) if hasattr(found, "from_filter") else found()
    return made


# -- users ---------------------------------------------------------------------------------------------------------


def from_numpy(dtype: DTypeLike, *, object_codec: str | None = None) -> DataType:
    """Make the data type that a user's `dtype` means.

    A `DataType` is returned unchanged; a string is a v3 name (``"bfloat16"``, ``"string"``, ``"r24"``) or else a NumPy name
    (``"<i4"``, ``"U7"``, ``"datetime64[ns]"``); a mapping is a v3 object. `str` and `bytes`, and ``U`` and ``S``
    without a length, are the variable-length types. Fields of records are tuples, or lists as in JSON. ``object`` needs
    `object_codec`, the numcodecs id of a v2 filter (for ragged arrays ``"vlen-array:<i4"``). A byte order is kept. NumPy's
    aligned records are packed.

    Raises `DataTypeValidationError` for a dtype without a Zarr data type, and for records whose fields have titles.
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
        native = np.dtype(_with_tuples(dtype) if isinstance(dtype, list) else dtype)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        if isinstance(dtype, str) and not TYPESTR.fullmatch(dtype):
            raise unknown(dtype) from error
        raise DataTypeValidationError(f"not a data type: {short(dtype)}", got=str(error)) from error
    return _from_native(native, object_codec)


def _with_tuples(fields: list[object]) -> list[object]:
    """Return the fields of a record as tuples, which NumPy takes; from JSON, as documents of v2 spell them, they are lists.

    >>> _with_tuples([["a", "<i4"], ["b", [["c", "u1", [2, 3]]]]])
    [('a', '<i4'), ('b', [('c', 'u1', (2, 3))])]
    """
    found: list[object] = []
    for field in fields:
        if isinstance(field, list):
            types = [_with_tuples(part) if isinstance(part, list) else part for part in field[1:2]]
            field = (*field[:1], *types, *(tuple(part) if isinstance(part, list) else part for part in field[2:]))
        found.append(field)
    return found


def _is_v3_name(text: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9._-]+", text) is not None and registry.get("data_type", text) is not None


def _is_padded(native: AnyDType) -> bool:
    """Whether there are bytes between the fields of a record, or after them, also in a field that is a record."""
    fields = [native[name] for name in native.names or ()]
    gaps = bool(fields) and native.itemsize != sum(field.itemsize for field in fields)
    return gaps or any(_is_padded(field.base) for field in fields)


def _from_native(native: AnyDType, object_codec: str | None, *, below: bool = False) -> DataType:
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

        titled = [name for name, given in native.fields.items() if len(given) > 2 and name in (native.names or ())]
        if titled:
            raise DataTypeValidationError(
                f"field {titled[0]!r} has a title, which no Zarr data type keeps",
                expected="fields with one name each",
                got=str(native),
                hint="Make the dtype again from names and types alone",
            )
        if not below and _is_padded(native):
            warn_as_zarr_python(f"the padding of {native!r} is removed: elements are stored in a packed layout")
        bases = [(name, native[name].base, native[name].shape) for name in native.names or ()]
        return Struct(fields=[Field(name, _from_native(base, None, below=True), shape) for name, base, shape in bases])
    if native.kind in "US" and native.itemsize == 0:
        return _object_type(_OBJECT_CODECS["vlen-utf8" if native.kind == "U" else "vlen-bytes"], {})
    if native.kind in "mM" and np.datetime_data(native)[0] == "generic":  # whose `str` omits multiples
        from tessarr.dtypes import time

        kind = time.DateTime64 if native.kind == "M" else time.TimeDelta64
        made = kind(scale_factor=np.datetime_data(native)[1])
        return made.with_byteorder(">" if native.byteorder == ">" else "=")
    if native.subdtype is not None or (native.str[1:] not in KINDS and native.kind not in "SUVmM"):
        raise DataTypeValidationError(
            f"Zarr has no data type for the NumPy dtype {native!r}",
            hint="Cast the data first, for example to float64",
        )
    return from_typestr(native.str)


def _from_object_codec(object_codec: str | None) -> DataType:
    name, _, argument = (object_codec or "").partition(":")
    if name == "pickle":
        raise _pickle_refused()
    if name in _OBJECT_CODECS and (argument or name != "vlen-array"):
        return _object_type(_OBJECT_CODECS[name], {"id": name, "dtype": argument})
    raise DataTypeValidationError(
        "the NumPy dtype object does not say what the elements are",
        got=f"object_codec={object_codec!r}",
        hint="Use dtype=str for text or dtype=bytes for bytes; for Zarr v2 name an object_codec: "
        f"{', '.join(_OBJECT_CODECS)} (ragged arrays: 'vlen-array:<i4')",
    )


def from_document(data: JSON, zarr_format: ZarrFormat) -> DataType:
    """Parse a v3 ``data_type``; for v2 zarr-python's object ``{"name": "<i4", "object_codec_id": null}``."""
    if zarr_format == 3:
        return from_v3(data)
    if not isinstance(data, Mapping) or "name" not in data:
        expected = '{"name": …, "object_codec_id": …}'
        raise DataTypeValidationError("invalid data type of Zarr v2", expected=expected, got=repr(data))
    codec, name = data.get("object_codec_id"), data["name"]
    if codec is not None and not (isinstance(name, str) and name.endswith("O")):
        raise DataTypeValidationError(f"elements of {name!r} need no object_codec_id", expected="null", got=repr(codec))
    return from_v2(name, [{"id": codec}] if codec is not None else None)


Element.of_numpy = staticmethod(from_numpy)
Element.of_document = staticmethod(from_document)

__all__ = ["DTypeLike", "from_document", "from_numpy", "from_v2", "from_v3"]
