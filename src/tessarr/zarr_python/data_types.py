"""tessarr's extension data types as data types of zarr-python, under its entry-point group ``zarr.data_type``.

zarr-python 3.4 finds them by itself. `register` makes them known to releases that do not look, such as 3.1.6. In memory they
are the dtypes of the package `ml_dtypes`; complex ones are structured, ``[("real", …), ("imag", …)]``, so that they are never
chosen for a dtype and must be named: ``zarr.create_array(…, dtype="complex_bfloat16")``.

>>> import ml_dtypes, numpy as np, zarr, tessarr.zarr_python.data_types
>>> tessarr.zarr_python.data_types.register()
>>> z = zarr.create_array({}, shape=(3,), dtype=np.dtype(ml_dtypes.bfloat16), fill_value=1.5)
>>> z.metadata.data_type.to_json(zarr_format=3), z[:].astype("f4").tolist()
('bfloat16', [1.5, 1.5, 1.5])

zarr-python loads this module for every array, so that it loads nothing of tessarr until an array has one of these types.

Source: `zarr.core.dtype.wrapper.ZDType` of zarr-python 3.1 to 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
import zarr.errors
from zarr.core.dtype.common import HasEndianness, HasItemSize
from zarr.core.dtype.wrapper import ZDType

if TYPE_CHECKING:
    from tessarr.dtypes.base import DataType
    from tessarr.types import JSON, ZarrFormat

_DType = np.dtype[np.generic]


def _other_type() -> type[ValueError]:
    """Return the error by which a data type says that a document names another one. Its old place warns since 3.4."""
    moved = getattr(zarr.errors, "DataTypeValidationError", None)
    if moved is not None:
        return cast("type[ValueError]", moved)
    from zarr.dtype import DataTypeValidationError

    return DataTypeValidationError


_OtherTypeError = _other_type()


class _Ours(ZDType[_DType, np.generic], HasItemSize):
    """A data type of tessarr, by its name."""

    dtype_cls = np.dtype
    _zarr_v3_name: ClassVar[str]
    is_named_only: ClassVar[bool] = False
    """Whether another data type has the same NumPy dtype."""

    @property
    def ours(self) -> DataType:
        """The data type of tessarr, in the byte order of this one."""
        from tessarr.dtypes.named import from_v3

        made = from_v3(self._zarr_v3_name)
        order = getattr(self, "endianness", None)
        return made if order is None else made.with_byteorder("<" if order == "little" else ">")

    @property
    def item_size(self) -> int:
        """Bytes of an element in memory."""
        return self.to_native_dtype().itemsize

    @classmethod
    def from_native_dtype(cls, dtype: _DType) -> Self:
        if cls.is_named_only or dtype.name != cls._zarr_v3_name:
            raise _OtherTypeError(f"{dtype} is not {cls._zarr_v3_name}")
        return cls() if dtype.byteorder != ">" else cls._big()

    @classmethod
    def _big(cls) -> Self:
        """Return the type in big-endian order. Overridden where there is one."""
        raise _OtherTypeError(f"{cls._zarr_v3_name} has no byte order")

    def to_native_dtype(self) -> _DType:
        return cast("_DType", self.ours.dtype)

    @classmethod
    def _from_json_v2(cls, data: object) -> Self:
        if data != {"name": cls._zarr_v3_name, "object_codec_id": None}:
            raise _OtherTypeError(f"{data!r} is not {cls._zarr_v3_name}")
        return cls()

    @classmethod
    def _from_json_v3(cls, data: object) -> Self:
        if data not in (cls._zarr_v3_name, {"name": cls._zarr_v3_name}):
            raise _OtherTypeError(f"{data!r} is not {cls._zarr_v3_name}")
        return cls()

    def to_json(self, zarr_format: ZarrFormat) -> JSON:  # type: ignore[override] # their overloads are by literal
        """Return the name; of v2, as TensorStore spells it."""
        return self.ours.to_json() if zarr_format == 3 else {"name": self.ours.to_v2(), "object_codec_id": None}

    def _check_scalar(self, data: object) -> bool:
        try:
            self.ours.cast_fill(data)
        except (TypeError, ValueError):
            return False
        return True

    def cast_scalar(self, data: object) -> np.generic:
        return cast("np.generic", self.ours.cast_fill(data)[()])

    def default_scalar(self) -> np.generic:
        return cast("np.generic", self.ours.default_fill()[()])

    def from_json_scalar(self, data: JSON, *, zarr_format: ZarrFormat) -> np.generic:
        return cast("np.generic", self.ours.parse_fill(data, zarr_format)[()])

    def to_json_scalar(self, data: object, *, zarr_format: ZarrFormat) -> JSON:
        return self.ours.dump_fill(self.ours.cast_fill(data), zarr_format)


@dataclass(frozen=True, kw_only=True)
class Int2(_Ours):
    """``int2``."""

    _zarr_v3_name = "int2"


@dataclass(frozen=True, kw_only=True)
class Int4(_Ours):
    """``int4``."""

    _zarr_v3_name = "int4"


@dataclass(frozen=True, kw_only=True)
class UInt2(_Ours):
    """``uint2``."""

    _zarr_v3_name = "uint2"


@dataclass(frozen=True, kw_only=True)
class UInt4(_Ours):
    """``uint4``."""

    _zarr_v3_name = "uint4"


@dataclass(frozen=True, kw_only=True)
class BFloat16(_Ours, HasEndianness):
    """``bfloat16``."""

    _zarr_v3_name = "bfloat16"

    @classmethod
    def _big(cls) -> Self:
        return cls(endianness="big")


@dataclass(frozen=True, kw_only=True)
class Float8E3M4(_Ours):
    """``float8_e3m4``."""

    _zarr_v3_name = "float8_e3m4"


@dataclass(frozen=True, kw_only=True)
class Float8E4M3(_Ours):
    """``float8_e4m3``."""

    _zarr_v3_name = "float8_e4m3"


@dataclass(frozen=True, kw_only=True)
class Float8E5M2(_Ours):
    """``float8_e5m2``."""

    _zarr_v3_name = "float8_e5m2"


@dataclass(frozen=True, kw_only=True)
class Float8E4M3FN(_Ours):
    """``float8_e4m3fn``."""

    _zarr_v3_name = "float8_e4m3fn"


@dataclass(frozen=True, kw_only=True)
class Float8E4M3B11FNUZ(_Ours):
    """``float8_e4m3b11fnuz``."""

    _zarr_v3_name = "float8_e4m3b11fnuz"


@dataclass(frozen=True, kw_only=True)
class Float8E4M3FNUZ(_Ours):
    """``float8_e4m3fnuz``."""

    _zarr_v3_name = "float8_e4m3fnuz"


@dataclass(frozen=True, kw_only=True)
class Float8E5M2FNUZ(_Ours):
    """``float8_e5m2fnuz``."""

    _zarr_v3_name = "float8_e5m2fnuz"


@dataclass(frozen=True, kw_only=True)
class Float8E8M0FNU(_Ours):
    """``float8_e8m0fnu``."""

    _zarr_v3_name = "float8_e8m0fnu"


@dataclass(frozen=True, kw_only=True)
class Float6E2M3FN(_Ours):
    """``float6_e2m3fn``."""

    _zarr_v3_name = "float6_e2m3fn"


@dataclass(frozen=True, kw_only=True)
class Float6E3M2FN(_Ours):
    """``float6_e3m2fn``."""

    _zarr_v3_name = "float6_e3m2fn"


@dataclass(frozen=True, kw_only=True)
class Float4E2M1FN(_Ours):
    """``float4_e2m1fn``."""

    _zarr_v3_name = "float4_e2m1fn"


@dataclass(frozen=True, kw_only=True)
class ComplexFloat16(_Ours, HasEndianness):
    """``complex_float16``."""

    _zarr_v3_name = "complex_float16"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexBFloat16(_Ours, HasEndianness):
    """``complex_bfloat16``."""

    _zarr_v3_name = "complex_bfloat16"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat32(_Ours, HasEndianness):
    """``complex_float32``."""

    _zarr_v3_name = "complex_float32"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat64(_Ours, HasEndianness):
    """``complex_float64``."""

    _zarr_v3_name = "complex_float64"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat8E3M4(_Ours):
    """``complex_float8_e3m4``."""

    _zarr_v3_name = "complex_float8_e3m4"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat8E4M3(_Ours):
    """``complex_float8_e4m3``."""

    _zarr_v3_name = "complex_float8_e4m3"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat8E5M2(_Ours):
    """``complex_float8_e5m2``."""

    _zarr_v3_name = "complex_float8_e5m2"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat8E4M3B11FNUZ(_Ours):
    """``complex_float8_e4m3b11fnuz``."""

    _zarr_v3_name = "complex_float8_e4m3b11fnuz"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat8E4M3FNUZ(_Ours):
    """``complex_float8_e4m3fnuz``."""

    _zarr_v3_name = "complex_float8_e4m3fnuz"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat8E5M2FNUZ(_Ours):
    """``complex_float8_e5m2fnuz``."""

    _zarr_v3_name = "complex_float8_e5m2fnuz"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat8E8M0FNU(_Ours):
    """``complex_float8_e8m0fnu``."""

    _zarr_v3_name = "complex_float8_e8m0fnu"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat6E2M3FN(_Ours):
    """``complex_float6_e2m3fn``."""

    _zarr_v3_name = "complex_float6_e2m3fn"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat6E3M2FN(_Ours):
    """``complex_float6_e3m2fn``."""

    _zarr_v3_name = "complex_float6_e3m2fn"
    is_named_only = True


@dataclass(frozen=True, kw_only=True)
class ComplexFloat4E2M1FN(_Ours):
    """``complex_float4_e2m1fn``."""

    _zarr_v3_name = "complex_float4_e2m1fn"
    is_named_only = True


DATA_TYPES: tuple[type[_Ours], ...] = (
    Int2,
    Int4,
    UInt2,
    UInt4,
    BFloat16,
    Float8E3M4,
    Float8E4M3,
    Float8E5M2,
    Float8E4M3FN,
    Float8E4M3B11FNUZ,
    Float8E4M3FNUZ,
    Float8E5M2FNUZ,
    Float8E8M0FNU,
    Float6E2M3FN,
    Float6E3M2FN,
    Float4E2M1FN,
    ComplexFloat16,
    ComplexBFloat16,
    ComplexFloat32,
    ComplexFloat64,
    ComplexFloat8E3M4,
    ComplexFloat8E4M3,
    ComplexFloat8E5M2,
    ComplexFloat8E4M3B11FNUZ,
    ComplexFloat8E4M3FNUZ,
    ComplexFloat8E5M2FNUZ,
    ComplexFloat8E8M0FNU,
    ComplexFloat6E2M3FN,
    ComplexFloat6E3M2FN,
    ComplexFloat4E2M1FN,
)
"""All of them."""


def register() -> None:
    """Register all of them with zarr-python. zarr-python 3.4 does it by itself."""
    from zarr.core.dtype import data_type_registry

    for data_type in DATA_TYPES:
        data_type_registry.register(data_type._zarr_v3_name, data_type)
