"""The data types by name, for users; under zarr-python's names where it has the type.

>>> parse_dtype("float32"), Int32(endianness="big").dtype.str
(Float32(), '>i4')

Each class is imported at its first use.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tessarr import registry
from tessarr.dtypes.base import DataType
from tessarr.dtypes.parse import DTypeLike, from_numpy, from_v2, from_v3
from tessarr.errors import DataTypeValidationError
from tessarr.types import JSON, ZarrFormat

if TYPE_CHECKING:
    from tessarr.dtypes.numeric import (
        Bool,
        Complex64,
        Complex128,
        Float16,
        Float32,
        Float64,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
    )
    from tessarr.dtypes.raw import FixedLengthUTF32, NullTerminatedBytes, RawBytes
    from tessarr.dtypes.small import BFloat16, Int2, Int4, UInt2, UInt4
    from tessarr.dtypes.struct import Struct, Structured
    from tessarr.dtypes.time import DateTime64, TimeDelta64
    from tessarr.dtypes.variable import VariableLengthBytes, VariableLengthUTF8

ZDType = DataType
"""zarr-python's name for `DataType`."""

_HOMES = {
    "numeric": "Bool Complex128 Complex64 Float16 Float32 Float64 Int16 Int32 Int64 Int8 UInt16 UInt32 UInt64 UInt8",
    "raw": "FixedLengthUTF32 NullTerminatedBytes RawBytes",
    "small": "BFloat16 Int2 Int4 UInt2 UInt4",
    "struct": "Struct Structured",
    "time": "DateTime64 TimeDelta64",
    "variable": "VariableLengthBytes VariableLengthUTF8",
}
_OF_ZARR_PYTHON = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "fixed_length_utf32", "string", "raw_bytes", "null_terminated_bytes",
    "variable_length_bytes", "struct", "numpy.datetime64", "numpy.timedelta64",
)  # fmt: skip
"""The names that zarr-python's registry has, in its order."""
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


class DataTypeRegistry:
    """The data types that v3 names resolve to; one view of `tessarr.registry` under zarr-python's method names."""

    @property
    def contents(self) -> Mapping[str, type[DataType]]:
        """A new dict of all names, aliases included, to classes. Imports all of them."""
        return {name: self.get(name) for name in registry.names("data_type")}

    def get(self, key: str) -> type[DataType]:
        """Return the class of `key`. Raises `KeyError`."""
        found: type[DataType] | None = registry.get("data_type", key)
        if found is None:
            raise KeyError(key)
        return found

    def register(self, key: str, cls: type[DataType]) -> None:
        """Register `cls` under `key`; replaces an earlier class."""
        registry.register("data_type", key, cls)

    def match_dtype(self, dtype: DTypeLike) -> DataType:
        """Return the data type of a NumPy dtype. Raises `DataTypeValidationError`."""
        return parse_dtype(dtype)

    def match_json(self, data: JSON, *, zarr_format: ZarrFormat) -> DataType:
        """Return the data type for its JSON in a document of `zarr_format`. Raises `DataTypeValidationError`."""
        if zarr_format == 3:
            return from_v3(data)
        try:
            return parse_dtype(data, zarr_format=zarr_format)
        except DataTypeValidationError as error:
            raise DataTypeValidationError(f"No Zarr data type found that matches {data!r}: {error}") from error


class ZarrPythonRegistry(DataTypeRegistry):
    """The registry for code of zarr-python: its `contents` lack the names that only tessarr has."""

    @property
    def contents(self) -> Mapping[str, type[DataType]]:
        """A new dict of names to classes: zarr-python's names, in its order, then registered ones."""
        every = {**super().contents}
        found = {name: every.pop(name) for name in _OF_ZARR_PYTHON}
        return found | {name: cls for name, cls in every.items() if not cls.__module__.startswith("tessarr.")}


data_type_registry = ZarrPythonRegistry()
full_registry = DataTypeRegistry()
"""``tessarr.dtype.data_type_registry``, which has all names."""


def parse_dtype(
    dtype_spec: DTypeLike | JSON, *, zarr_format: ZarrFormat = 3, object_codec: str | None = None
) -> DataType:
    """Parse a data type: a `DataType`, a v3 name or object, or anything that NumPy accepts as dtype.

    zarr-python's v2 object ``{"name": "|O", "object_codec_id": "vlen-utf8"}`` is accepted too, and with `zarr_format` 2
    the v2 list of a structured dtype. `object_codec` is the codec of the elements of dtype ``object``.

    Raises `DataTypeValidationError` for an unknown data type.
    """
    if zarr_format < 3 and isinstance(dtype_spec, Mapping) and "object_codec_id" in dtype_spec:
        spec: Mapping[str, JSON] = dict(dtype_spec)  # type: ignore[arg-type]
        codec = spec["object_codec_id"]
        return from_v2(spec.get("name"), [{"id": codec}] if isinstance(codec, str) else None)
    if zarr_format < 3 and isinstance(dtype_spec, list) and all(isinstance(item, list) for item in dtype_spec):
        return from_v2(dtype_spec, None)
    if isinstance(dtype_spec, int | float):
        raise DataTypeValidationError(f"not a data type: {dtype_spec!r}")
    return from_numpy(dtype_spec, object_codec=object_codec)  # type: ignore[arg-type]


def check_dtype_spec_no_object_codec_v2(data: object) -> bool:
    """Return whether `data` is zarr-python's JSON object of a v2 data type whose elements need no object codec."""
    if not isinstance(data, Mapping) or data.keys() != {"name", "object_codec_id"}:
        return False
    return isinstance(data["name"], str | list) and data["object_codec_id"] is None


def parse_data_type(
    dtype_spec: DTypeLike | JSON, *, zarr_format: ZarrFormat, object_codec: str | None = None
) -> DataType:
    """Call `parse_dtype`; zarr-python has both names."""
    return parse_dtype(dtype_spec, zarr_format=zarr_format, object_codec=object_codec)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"tessarr.dtypes.{home}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


__all__ = [
    "BFloat16",
    "Bool",
    "Complex64",
    "Complex128",
    "DataType",
    "DataTypeRegistry",
    "DataTypeValidationError",
    "DateTime64",
    "FixedLengthUTF32",
    "Float16",
    "Float32",
    "Float64",
    "Int2",
    "Int4",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "NullTerminatedBytes",
    "RawBytes",
    "Struct",
    "Structured",
    "TimeDelta64",
    "UInt2",
    "UInt4",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "VariableLengthBytes",
    "VariableLengthUTF8",
    "ZDType",
    "data_type_registry",
    "parse_data_type",
    "parse_dtype",
]
