"""Integers of 2 and 4 bits, floats of 4 to 16 bits, and complex numbers of such floats.

Registered extension data types; in memory they are the dtypes of the package `ml_dtypes` (extra ``tessarr[ml]``), one
byte per element (two for bfloat16). ``float8_e4m3fn`` is not registered; TensorStore has it, and so has tessarr.

>>> BFloat16().to_json(), Float8E5M2().layout.parse("NaN")
('bfloat16', 126)

A complex type of small floats has no NumPy counterpart: its dtype is structured, ``[("real", …), ("imag", …)]``.
v2 has no typestr for these types; TensorStore writes the bare v3 name as v2 ``dtype``, and so does tessarr.

Limits: hexadecimal fill values of types with fewer than 8 bits must not set the unused upper bits.
``float8_e8m0fnu`` holds no zero; its default fill value is the element whose bits are 0, 2**-127.
Source: the registered data types' own pages in the extensions repository; OCP Microscaling Formats 1.0.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from tessarr.dtypes import floats
from tessarr.dtypes.element import Element, Ordered
from tessarr.dtypes.numeric import Complex, Float16, Floating, Integer, Plain
from tessarr.errors import DataTypeValidationError, MissingDependencyError
from tessarr.types import JSON, AnyDType


def _ml_dtype(name: str) -> AnyDType:
    """Return the dtype `name` of `ml_dtypes`. Raises `MissingDependencyError`."""
    try:
        import ml_dtypes
    except ImportError as error:
        raise MissingDependencyError(
            f"data type {name} needs the package ml_dtypes", hint="Install it with: pip install 'tessarr[ml]'"
        ) from error
    found = getattr(ml_dtypes, name, None)
    if found is None:
        raise MissingDependencyError(
            f"data type {name} needs a newer ml_dtypes", hint="Update it with: pip install -U ml_dtypes"
        )
    dtype: AnyDType = np.dtype(found)
    return dtype


class _OneByte(Plain):
    @cached_property
    def dtype(self) -> AnyDType:
        """The dtype of this name in `ml_dtypes`."""
        return _ml_dtype(self.name)

    @property
    def itemsize(self) -> int:
        """1, also without `ml_dtypes`."""
        return 1

    def to_v2(self) -> JSON:
        """Return the v3 name, as TensorStore writes it."""
        return self.name


class _SmallInteger(Integer, _OneByte):
    pass


class Int2(_SmallInteger):
    """−2 to 1; one byte in memory."""

    name, bits, signed = "int2", 2, True


class Int4(_SmallInteger):
    """−8 to 7; one byte in memory."""

    name, bits, signed = "int4", 4, True


class UInt2(_SmallInteger):
    """0 to 3; one byte in memory."""

    name, bits, signed = "uint2", 2, False


class UInt4(_SmallInteger):
    """0 to 15; one byte in memory."""

    name, bits, signed = "uint4", 4, False


class BFloat16(Floating, Ordered, Plain):
    """The upper half of a float32: 8 exponent bits, 7 mantissa bits."""

    name, layout = "bfloat16", floats.BFLOAT16

    @cached_property
    def dtype(self) -> AnyDType:
        """``ml_dtypes.bfloat16`` in the stated byte order."""
        return _ml_dtype("bfloat16").newbyteorder(self.order)  # type: ignore[arg-type]

    @property
    def itemsize(self) -> int:
        """2, also without `ml_dtypes`."""
        return 2

    def to_v2(self) -> JSON:
        """Return ``"bfloat16"``, as TensorStore writes it; v2 has it in little-endian only."""
        if self.endianness == "big":
            raise DataTypeValidationError("v2 cannot express a big-endian bfloat16", hint="Use little-endian")
        return self.name


class _SmallFloat(Floating, _OneByte):
    pass


class Float8E3M4(_SmallFloat):
    """3 exponent bits, 4 mantissa bits, as IEEE 754."""

    name, layout = "float8_e3m4", floats.FLOAT8_E3M4


class Float8E4M3(_SmallFloat):
    """4 exponent bits, 3 mantissa bits, as IEEE 754."""

    name, layout = "float8_e4m3", floats.FLOAT8_E4M3


class Float8E5M2(_SmallFloat):
    """5 exponent bits, 2 mantissa bits, as IEEE 754."""

    name, layout = "float8_e5m2", floats.FLOAT8_E5M2


class Float8E4M3FN(_SmallFloat):
    """4 exponent bits, 3 mantissa bits, no infinity; up to 448. Not registered."""

    name, layout = "float8_e4m3fn", floats.FLOAT8_E4M3FN


class Float8E4M3B11FNUZ(_SmallFloat):
    """4 exponent bits (bias 11), 3 mantissa bits, no infinity, no −0."""

    name, layout = "float8_e4m3b11fnuz", floats.FLOAT8_E4M3B11FNUZ


class Float8E4M3FNUZ(_SmallFloat):
    """4 exponent bits (bias 8), 3 mantissa bits, no infinity, no −0."""

    name, layout = "float8_e4m3fnuz", floats.FLOAT8_E4M3FNUZ


class Float8E5M2FNUZ(_SmallFloat):
    """5 exponent bits (bias 16), 2 mantissa bits, no infinity, no −0."""

    name, layout = "float8_e5m2fnuz", floats.FLOAT8_E5M2FNUZ


class Float8E8M0FNU(_SmallFloat):
    """Powers of two from 2**-127 to 2**127: no sign, no zero, no infinity."""

    name, layout = "float8_e8m0fnu", floats.FLOAT8_E8M0FNU


class Float6E2M3FN(_SmallFloat):
    """2 exponent bits, 3 mantissa bits, neither infinity nor NaN; up to 7.5."""

    name, layout = "float6_e2m3fn", floats.FLOAT6_E2M3FN


class Float6E3M2FN(_SmallFloat):
    """3 exponent bits, 2 mantissa bits, neither infinity nor NaN; up to 28."""

    name, layout = "float6_e3m2fn", floats.FLOAT6_E3M2FN


class Float4E2M1FN(_SmallFloat):
    """2 exponent bits, 1 mantissa bit, neither infinity nor NaN; up to 6."""

    name, layout = "float4_e2m1fn", floats.FLOAT4_E2M1FN


# -- complex -------------------------------------------------------------------------------------------------------


class _SmallComplex(Complex, Plain):
    part: ClassVar[type[Element]]
    """The class of the real and of the imaginary part."""

    def _part(self) -> Element:
        return self.part()

    @cached_property
    def dtype(self) -> AnyDType:
        """Structured: fields ``real`` and ``imag``."""
        part = self._part().dtype
        return np.dtype([("real", part), ("imag", part)])

    @property
    def itemsize(self) -> int:
        """Twice that of the part."""
        return 2 * self.layout.nbytes

    def to_v2(self) -> JSON:
        """Return the v3 name."""
        return self.name


class _WideSmallComplex(Ordered, _SmallComplex):
    """A complex type with parts of two bytes."""

    part: ClassVar[type[Ordered]]

    def _part(self) -> Element:
        return self.part(endianness=self.endianness)

    @cached_property
    def dtype(self) -> AnyDType:
        """Structured: fields ``real`` and ``imag`` in the stated byte order."""
        part = self._part().dtype
        return np.dtype([("real", part), ("imag", part)])

    def to_v2(self) -> JSON:
        """Return the v3 name, which is little-endian."""
        if self.endianness == "big":
            raise DataTypeValidationError(f"v2 cannot express a big-endian {self.name}", hint="Use little-endian")
        return self.name


class ComplexFloat16(_WideSmallComplex):
    """Two float16: real, imaginary."""

    name, part, layout = "complex_float16", Float16, floats.FLOAT16


class ComplexBFloat16(_WideSmallComplex):
    """Two bfloat16: real, imaginary."""

    name, part, layout = "complex_bfloat16", BFloat16, floats.BFLOAT16


class ComplexFloat8E3M4(_SmallComplex):
    """Two float8_e3m4: real, imaginary."""

    name, part, layout = "complex_float8_e3m4", Float8E3M4, floats.FLOAT8_E3M4


class ComplexFloat8E4M3(_SmallComplex):
    """Two float8_e4m3: real, imaginary."""

    name, part, layout = "complex_float8_e4m3", Float8E4M3, floats.FLOAT8_E4M3


class ComplexFloat8E5M2(_SmallComplex):
    """Two float8_e5m2: real, imaginary."""

    name, part, layout = "complex_float8_e5m2", Float8E5M2, floats.FLOAT8_E5M2


class ComplexFloat8E4M3B11FNUZ(_SmallComplex):
    """Two float8_e4m3b11fnuz: real, imaginary."""

    name, part, layout = "complex_float8_e4m3b11fnuz", Float8E4M3B11FNUZ, floats.FLOAT8_E4M3B11FNUZ


class ComplexFloat8E4M3FNUZ(_SmallComplex):
    """Two float8_e4m3fnuz: real, imaginary."""

    name, part, layout = "complex_float8_e4m3fnuz", Float8E4M3FNUZ, floats.FLOAT8_E4M3FNUZ


class ComplexFloat8E5M2FNUZ(_SmallComplex):
    """Two float8_e5m2fnuz: real, imaginary."""

    name, part, layout = "complex_float8_e5m2fnuz", Float8E5M2FNUZ, floats.FLOAT8_E5M2FNUZ


class ComplexFloat8E8M0FNU(_SmallComplex):
    """Two float8_e8m0fnu: real, imaginary."""

    name, part, layout = "complex_float8_e8m0fnu", Float8E8M0FNU, floats.FLOAT8_E8M0FNU


class ComplexFloat6E2M3FN(_SmallComplex):
    """Two float6_e2m3fn: real, imaginary."""

    name, part, layout = "complex_float6_e2m3fn", Float6E2M3FN, floats.FLOAT6_E2M3FN


class ComplexFloat6E3M2FN(_SmallComplex):
    """Two float6_e3m2fn: real, imaginary."""

    name, part, layout = "complex_float6_e3m2fn", Float6E3M2FN, floats.FLOAT6_E3M2FN


class ComplexFloat4E2M1FN(_SmallComplex):
    """Two float4_e2m1fn: real, imaginary."""

    name, part, layout = "complex_float4_e2m1fn", Float4E2M1FN, floats.FLOAT4_E2M1FN
