"""Booleans, integers, floats and complex numbers with NumPy counterparts.

Source: Zarr v3.1 core, "Data types" and "Fill value"; Zarr v2, "Data type encoding" and "Fill value encoding".
v3: ``"int32"``; the byte order belongs to the ``bytes`` codec. v2: ``"<i4"``; the byte order belongs to the type.
``complex_float32`` and ``complex_float64`` are registered aliases of ``complex64`` and ``complex128``: read, not
written.

>>> Int32().to_json(), Int32(endianness="big").to_v2(), Float32().dump_fill(Float32().cast_fill("NaN"), 3)
('int32', '>i4', 'NaN')

Limits and differences: v3 fill values are strict (no ``1.0`` for an integer, no ``1`` for a bool, and no silent
overflow to infinity). v2 fill values are read leniently: 0 and 1 for booleans, ``0.0`` for integers. v2 cannot
distinguish NaNs: `dump_fill` writes every NaN as ``"NaN"`` there, and its payload is lost.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np

from tessarr.dtypes import floats
from tessarr.dtypes.base import Scalar
from tessarr.dtypes.element import (
    Element,
    Ordered,
    as_scalar,
    fill_error,
    from_bits,
    from_bytes,
    named_by_format,
    no_configuration,
    order_of,
    read_by_format,
    refused_fill,
    same_type,
    to_bits,
)
from tessarr.types import JSON, AnyDType, ZarrFormat


class Plain(Element):
    """A type without parameters, whose v3 form is its name alone."""

    @classmethod
    @read_by_format
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:
        no_configuration(name, configuration)
        return cls()

    @named_by_format
    def to_json(self) -> JSON:
        return self.name


class Bool(Plain):
    """True or false, one byte (0 or 1)."""

    name = "bool"

    @property
    def dtype(self) -> AnyDType:
        """``np.dtype(bool)``."""
        return np.dtype(np.bool_)

    def to_v2(self) -> JSON:
        """Return ``"|b1"``."""
        return "|b1"

    def default_fill(self) -> Scalar:
        """Return False."""
        return from_bytes(b"\0", self.dtype)

    def cast_fill(self, value: object) -> Scalar:
        """Accept booleans, and numbers equal to 0 or 1."""
        scalar = as_scalar(value)
        plain = value if scalar is None else scalar.item()
        if isinstance(plain, bool | int | float) and plain in (0, 1):
            return from_bytes(bytes([bool(plain)]), self.dtype)
        raise ValueError(f"not a boolean: {value!r}")

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept JSON true and false; in v1 and v2 also 0 and 1."""
        if isinstance(value, bool) or (zarr_format < 3 and isinstance(value, int | float) and value in (0, 1)):
            return from_bytes(bytes([bool(value)]), self.dtype)
        raise fill_error(self.name, value, "true or false")

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return JSON true or false."""
        return bool(fill)


# -- integers ------------------------------------------------------------------------------------------------------


class Integer(Element):
    """Base class of all integers, also those of 2 and 4 bits: the range, and exact JSON integers."""

    bits: ClassVar[int]
    signed: ClassVar[bool]

    def _range(self) -> tuple[int, int]:
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def _make(self, number: int) -> Scalar:
        low, high = self._range()
        if not low <= number <= high:
            raise ValueError(f"{number} is out of range for {self.name}: {low} to {high}")
        scalar = np.array(number, dtype=self.dtype)
        scalar.flags.writeable = False
        return scalar

    def default_fill(self) -> Scalar:
        """Return 0."""
        return self._make(0)

    def cast_fill(self, value: object) -> Scalar:
        """Accept integers, and floats with integral values, in range."""
        scalar = as_scalar(value)
        plain = value if scalar is None else scalar[()]
        try:
            if isinstance(plain, float | np.floating):
                if int(plain) != plain:
                    raise ValueError(f"invalid literal for an integer: {value!r}")
                return self._make(int(plain))
            if isinstance(plain, np.generic) and not isinstance(plain, np.integer):
                plain = plain.item()
            return self._make(_index(plain))
        except OverflowError as error:
            raise ValueError(f"invalid literal for an integer: {value!r}") from error

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept a JSON integer in range; in v1 and v2 also one written as a float (``0.0``)."""
        low, high = self._range()
        number = value
        if zarr_format < 3 and isinstance(number, float) and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
            raise fill_error(
                self.name, value, f"a JSON integer from {low} to {high}, written without fraction or exponent"
            )
        return self._make(number)

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return a JSON integer."""
        return int(fill)


def _index(value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        if type(value).__module__ == "ml_dtypes":  # int2 … uint4 are integers without __index__
            return int(value)  # type: ignore[call-overload,no-any-return]
        raise TypeError(f"invalid literal for an integer: {value!r}") from None


class _Byte(Integer, Plain):
    bits = 8

    @property
    def dtype(self) -> AnyDType:
        """One byte; byte order has no meaning."""
        return np.dtype(self.name)

    def to_v2(self) -> JSON:
        """Return ``"|i1"`` or ``"|u1"``."""
        return self.dtype.str


class _WideInteger(Integer, Ordered, Plain):
    """An integer of several bytes."""


class Int8(_Byte):
    """A signed integer of 1 byte, two's complement."""

    name, signed = "int8", True


class UInt8(_Byte):
    """An unsigned integer of 1 byte."""

    name, signed = "uint8", False


class Int16(_WideInteger):
    """A signed integer of 2 bytes, two's complement."""

    name, code, bits, signed = "int16", "i2", 16, True


class UInt16(_WideInteger):
    """An unsigned integer of 2 bytes."""

    name, code, bits, signed = "uint16", "u2", 16, False


class Int32(_WideInteger):
    """A signed integer of 4 bytes, two's complement."""

    name, code, bits, signed = "int32", "i4", 32, True


class UInt32(_WideInteger):
    """An unsigned integer of 4 bytes."""

    name, code, bits, signed = "uint32", "u4", 32, False


class Int64(_WideInteger):
    """A signed integer of 8 bytes, two's complement."""

    name, code, bits, signed = "int64", "i8", 64, True


class UInt64(_WideInteger):
    """An unsigned integer of 8 bytes."""

    name, code, bits, signed = "uint64", "u8", 64, False


# -- floats --------------------------------------------------------------------------------------------------------


class Floating(Element):
    """Base class of all floats, also those of 4 to 16 bits that NumPy lacks."""

    layout: ClassVar[floats.FloatLayout]

    def default_fill(self) -> Scalar:
        """Return +0.0 (for ``float8_e8m0fnu``, which has no zero, the element whose bits are 0: 2**-127)."""
        return from_bits(0, self.dtype)

    def cast_fill(self, value: object) -> Scalar:
        """Accept a real number, rounded once, or the JSON strings of v3 (``"NaN"``, ``"0x7fc00001"``).

        A NumPy value of the same type keeps its bits. Raises `ValueError` when the value overflows.
        """
        scalar = as_scalar(value)
        if scalar is not None and same_type(scalar, self.dtype):
            return from_bits(to_bits(scalar), self.dtype)
        return from_bits(self.layout.cast(value), self.dtype)

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept a JSON number, ``"NaN"``, ``"Infinity"``, ``"-Infinity"``; in v3 also the bits, ``"0x7fc00001"``."""
        return from_bits(parse_float(self.name, self.layout, value, zarr_format), self.dtype)

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return the JSON form with the same bits; in v1 and v2 every NaN is ``"NaN"`` and loses its payload."""
        return self.layout.dump(to_bits(fill), hexadecimal=zarr_format == 3)


def parse_float(name: str, layout: floats.FloatLayout, value: JSON, zarr_format: ZarrFormat) -> int:
    """Parse a document's float for the data type `name` to its bits. Raises `MetadataValidationError`."""
    try:
        return layout.parse(value, hexadecimal=zarr_format == 3, bare=zarr_format < 3)
    except ValueError as error:
        raise refused_fill(name, value, error) from error


class _WideFloat(Floating, Ordered, Plain):
    """An IEEE 754 float of several bytes."""


class Float16(_WideFloat):
    """IEEE 754 half precision."""

    name, code, layout = "float16", "f2", floats.FLOAT16


class Float32(_WideFloat):
    """IEEE 754 single precision."""

    name, code, layout = "float32", "f4", floats.FLOAT32


class Float64(_WideFloat):
    """IEEE 754 double precision."""

    name, code, layout = "float64", "f8", floats.FLOAT64


# -- complex -------------------------------------------------------------------------------------------------------


class Complex(Element):
    """Base class of all complex types: two floats of one layout, the real part first."""

    layout: ClassVar[floats.FloatLayout]

    def _join(self, real: int, imaginary: int) -> Scalar:
        order = order_of(self.dtype)
        parts = (part.to_bytes(self.layout.nbytes, order) for part in (real, imaginary))
        return from_bytes(b"".join(parts), self.dtype)

    def _split(self, fill: Scalar) -> tuple[int, int]:
        order, data, half = order_of(fill.dtype), fill.tobytes(), self.layout.nbytes
        return int.from_bytes(data[:half], order), int.from_bytes(data[half:], order)

    def default_fill(self) -> Scalar:
        """Return 0 + 0i."""
        return self._join(0, 0)

    def cast_fill(self, value: object) -> Scalar:
        """Accept a number, or a pair of values that the real type of the same precision accepts."""
        scalar = as_scalar(value)
        if scalar is not None:
            if same_type(scalar, self.dtype):
                return self._join(*self._split(scalar))
            value = scalar[()]
        parts = tuple(value) if np.iterable(value) and not isinstance(value, str) else _parts(value)
        if len(parts) != 2:
            raise ValueError(f"neither a number nor a pair of numbers: {value!r}")
        real, imaginary = parts
        return self._join(self.layout.cast(real), self.layout.cast(imaginary))

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept a JSON list ``[real, imaginary]``, each as for the real type of the same precision."""
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
            raise fill_error(self.name, value, "a list of two: [real, imaginary]")
        real, imaginary = (parse_float(self.name, self.layout, part, zarr_format) for part in value)
        return self._join(real, imaginary)

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return ``[real, imaginary]``, each as for the real type of the same precision."""
        return [self.layout.dump(part, hexadecimal=zarr_format == 3) for part in self._split(fill)]

    def to_json_scalar(self, data: object, *, zarr_format: ZarrFormat) -> JSON:
        """Return `dump_fill` of any value that `cast_fill` accepts, as a tuple like zarr-python's."""
        return tuple(self.dump_fill(self.cast_fill(data), zarr_format))  # type: ignore[arg-type]


def _parts(value: object) -> tuple[object, object]:
    if isinstance(value, complex | np.complexfloating):
        return value.real, value.imag
    return value, 0


class _WideComplex(Complex, Ordered, Plain):
    """A complex type of NumPy."""


class Complex64(_WideComplex):
    """Two float32: real, imaginary."""

    name, code, layout = "complex64", "c8", floats.FLOAT32


class Complex128(_WideComplex):
    """Two float64: real, imaginary."""

    name, code, layout = "complex128", "c16", floats.FLOAT64
