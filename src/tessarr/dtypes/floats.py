"""Floating-point layouts of 4 to 64 bits, bit by bit, and their JSON form.

Values are converted to bits in exact integer arithmetic, rounded once, half to even, from the decimal text of the document,
without NumPy or a C double in between. So ``1.0000000596046447753907`` gives the right float32, a NaN keeps its payload,
and reading the fill value of a float8 does not need `ml_dtypes`.

Source: Zarr v3.1 core, "Fill value"; the registered data types of the extensions repository for the small layouts.

>>> hex(FLOAT32.parse(0.1)), FLOAT32.dump(0x3DCCCCCD), FLOAT32.dump(0x7FC00001)
('0x3dcccccd', 0.10000000149011612, '0x7fc00001')
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple, SupportsFloat, cast

import numpy as np

from tessarr.common.strict_json import FloatLiteral
from tessarr.types import JSON

if TYPE_CHECKING:
    from fractions import Fraction

_DIGITS = 800
"""Decimal digits that decide a rounding: 767 suffice for float64; of all others only zero or non-zero matters."""


class FloatLayout(NamedTuple):
    """Describe one binary floating-point format. Bit patterns are unsigned integers, sign first."""

    name: str
    nbytes: int
    """Bytes per element, also for formats with fewer than 8 bits."""
    exponent: int
    """Exponent bits."""
    mantissa: int
    """Stored mantissa bits."""
    bias: int
    largest: int
    """The bits of the largest finite value."""
    infinity: int | None
    """The bits of +∞; ``None`` for a format without infinity."""
    nan: int | None
    """The bits of ``"NaN"``; ``None`` for a format without NaN."""
    negative_zero: bool = True
    scale: bool = False
    """Only powers of two: no sign, no zero, no subnormal numbers (float8_e8m0fnu)."""

    @property
    def sign(self) -> int:
        """The mask of the sign bit; 0 for a format without sign."""
        return 0 if self.scale else 1 << (self.exponent + self.mantissa)

    @property
    def limit(self) -> int:
        """One more than the largest bit pattern."""
        return 1 << (self.exponent + self.mantissa + (not self.scale))

    # -- numbers and bits ------------------------------------------------------------------------------------

    def encode(self, number: Fraction, *, negative_zero: bool = False) -> int:
        """Return the bits of `number`, rounded half to even.

        Raises `ValueError` when it rounds to more than the largest finite value, or cannot be represented (zero and
        negative numbers in a scale format).
        """
        if not number:
            return self._zero(negative_zero)
        if self.scale and number < 0:
            raise ValueError(self._only_powers())
        code = self._magnitude(abs(number))
        if code > self.largest:
            raise ValueError(f"beyond the range of {self.name}, whose largest value is {self.decode(self.largest)!r}")
        if number < 0 and (code or self.negative_zero):
            code |= self.sign
        return code

    def _zero(self, negative: bool) -> int:
        """Return the bits of a zero. Most fill values are zeros, for which the modules of exact numbers are not imported."""
        if self.scale:
            raise ValueError(self._only_powers())
        return self.sign if negative and self.negative_zero else 0

    def _only_powers(self) -> str:
        return f"{self.name} holds only powers of two, from 2**-127; it has no zero and no sign"

    def _magnitude(self, number: Fraction) -> int:
        from fractions import Fraction

        exponent = number.numerator.bit_length() - number.denominator.bit_length()
        if Fraction(2) ** exponent > number:
            exponent -= 1
        if self.scale:
            return self._scale_code(number, exponent)
        exponent = max(exponent, 1 - self.bias)
        # round() of a Fraction rounds half to even; a carry into the next power of two gives the right code as well
        quotient = round(number / Fraction(2) ** (exponent - self.mantissa))
        return ((exponent + self.bias - 1) << self.mantissa) + quotient

    def _scale_code(self, number: Fraction, exponent: int) -> int:
        from fractions import Fraction

        code = exponent + self.bias
        above = number / Fraction(2) ** exponent
        return max(0, code + (above > Fraction(3, 2) or (above == Fraction(3, 2) and code % 2 == 1)))

    def decode(self, bits: int) -> float:
        """Return the value of finite `bits`, exactly."""
        magnitude = bits & ~self.sign
        field, fraction = magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1)
        if self.scale:
            return math.ldexp(1.0, field - self.bias)
        if field:
            fraction |= 1 << self.mantissa
        value = math.ldexp(fraction, max(field, 1) - self.bias - self.mantissa)
        return -value if bits & self.sign else value

    def is_nan(self, bits: int) -> bool:
        """Return whether `bits` are one of the format's NaNs."""
        magnitude = bits & ~self.sign
        return bits == self.nan or (self.nan is not None and magnitude > self.largest and magnitude != self.infinity)

    # -- JSON ------------------------------------------------------------------------------------------------

    def parse(self, value: JSON, *, hexadecimal: bool = True, bare: bool = False) -> int:
        """Return the bits of a JSON number, ``"NaN"``, ``"Infinity"``, ``"-Infinity"`` or ``"0x…"``.

        `hexadecimal`: the ``"0x…"`` form is allowed (v3). `bare`: a Python NaN or infinity is allowed (v1 documents hold
        bare tokens). Raises `ValueError` with the reason.
        """
        if isinstance(value, str):
            return self._parse_word(value, hexadecimal)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"it must be {_forms(self, hexadecimal)}")
        if isinstance(value, FloatLiteral):
            return self._parse_text(value.text)
        if isinstance(value, float) and not math.isfinite(value) and not bare:
            raise ValueError("a bare NaN or infinity is not JSON")
        return self.cast(value)

    def _parse_word(self, word: str, hexadecimal: bool) -> int:
        if word == "NaN":
            return self._nan()
        if word in ("Infinity", "-Infinity"):
            return self._infinite(word[0] == "-")
        if hexadecimal and re.fullmatch(rf"0x[0-9a-fA-F]{{{2 * self.nbytes}}}", word):
            bits = int(word, 16)
            if bits >= self.limit:
                raise ValueError(f"{self.name} has only {self.limit.bit_length() - 1} bits")
            return bits
        raise ValueError(f"it must be {_forms(self, hexadecimal)}")

    def _parse_text(self, text: str) -> int:
        if not text.strip("-0."):
            return self._zero(text.startswith("-"))
        from fractions import Fraction

        sign, digits, exponent = _decimal(text)
        if len(digits) > _DIGITS:
            exponent += len(digits) - _DIGITS - 1
            digits = (*digits[:_DIGITS], int(any(digits[_DIGITS:])))
        power = exponent + len(digits)
        # beyond ±400 every layout overflows or underflows, and 10**power must not be computed for a hostile power
        if not any(digits):
            exponent = 0
        elif power > 400:
            exponent = 400
        elif power < -400:
            digits, exponent = (1,), -400
        number = Fraction(int("".join(map(str, digits)))) * Fraction(10) ** exponent
        return self.encode(-number if sign else number, negative_zero=bool(sign))

    def dump(self, bits: int, *, hexadecimal: bool = True) -> float | str:
        """Return the JSON form that `parse` reads as the same bits.

        Without `hexadecimal` (v1, v2) every NaN becomes ``"NaN"``: those formats have no other NaN.
        """
        if bits == self.nan or (not hexadecimal and self.is_nan(bits)):
            return "NaN"
        if self.is_nan(bits):
            return f"0x{bits:0{2 * self.nbytes}x}"
        if self.infinity is not None and bits & ~self.sign == self.infinity:
            return "-Infinity" if bits & self.sign else "Infinity"
        return self.decode(bits)

    # -- Python and NumPy numbers ------------------------------------------------------------------------------

    def cast(self, value: object) -> int:
        """Return the bits of a Python or NumPy real number, or of a string that `parse` accepts.

        Raises `ValueError` for a number outside the format's range, `TypeError` for other values.
        """
        if isinstance(value, str):
            return self.parse(value)
        if isinstance(value, bool | np.bool_):
            value = int(value)
        if not hasattr(value, "as_integer_ratio"):
            value = _number(value)
        if value != value:
            return self._nan()
        if value in (math.inf, -math.inf):
            return self._infinite(value == -math.inf)
        numerator, denominator = cast("float", value).as_integer_ratio()
        if numerator == 0:
            return self._zero(math.copysign(1.0, float(value)) < 0)  # type: ignore[arg-type]
        from fractions import Fraction

        return self.encode(Fraction(int(numerator), int(denominator)))

    def _nan(self) -> int:
        if self.nan is None:
            raise ValueError(f"{self.name} has no NaN")
        return self.nan

    def _infinite(self, negative: bool) -> int:
        if self.infinity is None:
            raise ValueError(f"{self.name} has no infinity")
        return self.infinity | (self.sign if negative else 0)


def _decimal(text: str) -> tuple[int, tuple[int, ...], int]:
    """Parse decimal text into sign, digits (no leading zeros) and power of ten of the last digit."""
    from decimal import Decimal, InvalidOperation

    try:
        sign, digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:  # an exponent beyond 10**18: any exponent outside every layout will do
        mantissa, _, power = text.lower().partition("e")
        sign, digits, _ = Decimal(mantissa).as_tuple()
        exponent = -(10**9) if power.startswith("-") else 10**9
    assert isinstance(exponent, int)  # a text only for NaN and infinity, which are not JSON numbers
    return sign, digits, exponent


def _number(value: object) -> float | int:
    """Convert a number without `as_integer_ratio` that is not a string: integers of NumPy, small floats, 0-d arrays."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, complex | np.complexfloating | bytes) or not hasattr(value, "__float__"):
        raise TypeError(f"not a real number: {value!r}")
    return float(cast("SupportsFloat", value))


def _forms(layout: FloatLayout, hexadecimal: bool) -> str:
    words = ["a number"] + ['"NaN"'] * (layout.nan is not None)
    words += ['"Infinity", "-Infinity"'] * (layout.infinity is not None)
    words += [f'"0x" and {2 * layout.nbytes} hexadecimal digits'] * hexadecimal
    return " or ".join([", ".join(words[:-1]), words[-1]][not words[:-1] :])


def _ieee(name: str, exponent: int, mantissa: int) -> FloatLayout:
    """Make a layout with infinity and NaN in the highest exponent; the canonical NaN has only the top mantissa bit."""
    infinity = ((1 << exponent) - 1) << mantissa
    nbytes = (1 + exponent + mantissa) // 8
    nan = infinity | 1 << (mantissa - 1)
    return FloatLayout(name, nbytes, exponent, mantissa, (1 << (exponent - 1)) - 1, infinity - 1, infinity, nan)


FLOAT16 = _ieee("float16", 5, 10)
FLOAT32 = _ieee("float32", 8, 23)
FLOAT64 = _ieee("float64", 11, 52)
BFLOAT16 = _ieee("bfloat16", 8, 7)
FLOAT8_E3M4 = _ieee("float8_e3m4", 3, 4)
FLOAT8_E4M3 = _ieee("float8_e4m3", 4, 3)
FLOAT8_E5M2 = _ieee("float8_e5m2", 5, 2)
FLOAT8_E4M3FN = FloatLayout("float8_e4m3fn", 1, 4, 3, 7, 0x7E, None, 0x7F)
FLOAT8_E4M3B11FNUZ = FloatLayout("float8_e4m3b11fnuz", 1, 4, 3, 11, 0x7F, None, 0x80, negative_zero=False)
FLOAT8_E4M3FNUZ = FloatLayout("float8_e4m3fnuz", 1, 4, 3, 8, 0x7F, None, 0x80, negative_zero=False)
FLOAT8_E5M2FNUZ = FloatLayout("float8_e5m2fnuz", 1, 5, 2, 16, 0x7F, None, 0x80, negative_zero=False)
FLOAT8_E8M0FNU = FloatLayout("float8_e8m0fnu", 1, 8, 0, 127, 0xFE, None, 0xFF, negative_zero=False, scale=True)
FLOAT6_E2M3FN = FloatLayout("float6_e2m3fn", 1, 2, 3, 1, 0x1F, None, None)
FLOAT6_E3M2FN = FloatLayout("float6_e3m2fn", 1, 3, 2, 3, 0x1F, None, None)
FLOAT4_E2M1FN = FloatLayout("float4_e2m1fn", 1, 2, 1, 1, 0x07, None, None)
