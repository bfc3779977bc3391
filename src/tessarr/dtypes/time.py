"""Moments and durations: NumPy's ``datetime64`` and ``timedelta64``.

An int64 that counts multiples of ``scale_factor`` units; −2**63 is NaT, not a time.
v3: ``{"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 10}}`` (registered); both members are
required; multiples of the unit ``"generic"`` are counts that no one can convert. v2: ``"<M8[10us]"``; without a unit,
``"<M8"`` or ``"<M8[2generic]"``, it is read with a warning (`DataType.lacks_unit`). Fill value: the count, or ``"NaT"``.

>>> DateTime64(unit="us", scale_factor=10, endianness="big").to_v2()
'>M8[10us]'
>>> DateTime64(unit="s").dump_fill(np.array("NaT", "M8[s]"), 3)
'NaT'

Differences: ``"μs"`` is read (both Greek mu and micro sign) and written ``"us"``. `dump_fill` writes NaT as ``"NaT"``
in v3 and as −9223372036854775808 in v2; both are read in both.
Source: the registered data types ``numpy.datetime64`` and ``numpy.timedelta64``; Zarr v2, "Data type encoding".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.element import (
    Endianness,
    Ordered,
    as_scalar,
    configuration_of,
    fill_error,
    from_bits,
    named_by_format,
    read_by_format,
    to_bits,
)
from tessarr.errors import DataTypeValidationError, Problem
from tessarr.types import JSON, ZarrFormat

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic")
_SPELLED = (*UNITS[:9], "\u03bcs", *UNITS[9:])
"""The units with the other spelling of microseconds, as messages list them."""
NAT = -(2**63)


class _Time(Ordered):
    """Base class of both."""

    kind: ClassVar[str]
    unit: str
    """One of `UNITS`."""
    scale_factor: int
    """Units per count, 1 to 2**31 − 1."""

    def __init__(self, *, unit: str = "generic", scale_factor: int = 1, endianness: Endianness | None = None) -> None:
        super().__init__(endianness=endianness)
        unit = "us" if unit in ("\u03bcs", "\u00b5s") else unit
        problems = []
        if unit not in UNITS:
            message = f"unit must be one of {_SPELLED}, got {unit!r}."
            problems.append(Problem(("configuration", "unit"), "value", message))
        if type(scale_factor) is not int or not 1 <= scale_factor < 2**31:
            bound = "< 2147483648" if type(scale_factor) is int and scale_factor > 0 else "> 0"
            message = f"scale_factor must be {bound}, got {scale_factor!r}. It is an integer from 1 to 2^31-1"
            problems.append(Problem(("configuration", "scale_factor"), "value", message))
        if problems:
            raise DataTypeValidationError(f"invalid configuration of data type {self.name}", problems)
        vars(self).update(unit=unit, scale_factor=scale_factor)

    def _key(self) -> tuple[object, ...]:
        return self.unit, self.scale_factor, self.endianness

    def _arguments(self) -> Mapping[str, object]:
        return {"unit": self.unit, "scale_factor": self.scale_factor, **super()._arguments()}

    def _reordered(self, endianness: Endianness) -> DataType:
        return type(self)(unit=self.unit, scale_factor=self.scale_factor, endianness=endianness)

    @property
    def code(self) -> str:  # type: ignore[override]
        """Such as ``M8[10us]``."""
        if self.unit == "generic" and self.scale_factor == 1:
            return f"{self.kind}8"
        return f"{self.kind}8[{self.scale_factor if self.scale_factor > 1 else ''}{self.unit}]"

    @classmethod
    @read_by_format
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:
        """Parse ``unit`` and ``scale_factor``, both required."""
        found = configuration_of(name, configuration, ("unit", "scale_factor"))
        return cls(unit=found["unit"], scale_factor=found["scale_factor"])  # type: ignore[arg-type]

    @named_by_format
    def to_json(self) -> JSON:
        """Return the object form."""
        return {"name": self.name, "configuration": {"unit": self.unit, "scale_factor": self.scale_factor}}

    def to_v2(self) -> JSON:
        """Return a typestr such as ``"<M8[10us]"``; ``"<M8"`` without a unit, which v2 requires."""
        return f"{self.order}{self.code}"

    def default_fill(self) -> Scalar:
        """Return NaT."""
        return self._make(NAT)

    @property
    def lacks_unit(self) -> bool:
        """Whether the unit is unknown.

        >>> DateTime64().lacks_unit, DateTime64(unit="s").lacks_unit
        (True, False)
        """
        return self.unit == "generic"

    def _make(self, count: int) -> Scalar:
        if not NAT <= count < 2**63:
            raise ValueError(f"{count} does not fit 64 bits")
        return from_bits(count % 2**64, self.dtype)

    def cast_fill(self, value: object) -> Scalar:
        """Accept a NumPy, Python or ISO 8601 time that this unit can express exactly, ``"NaT"``, or a count."""
        scalar = as_scalar(value)
        if scalar is not None and scalar.dtype.kind in "iu":
            value = scalar.item()
        if isinstance(value, int) and not isinstance(value, bool):
            return self._make(value)
        if isinstance(value, str) and value.upper() in ("NAT", ""):  # without a unit, which NumPy 2.5 warns of
            return self._make(NAT)
        native = self.dtype.newbyteorder("=")
        try:
            given = scalar if scalar is not None else np.array(value, dtype=native.type)
            if given.ndim or given.dtype.kind != self.kind:
                raise TypeError(f"not a value of {self.name}: {value!r}")
            cast = given.astype(native)
            generic = "generic" in (self.unit, np.datetime_data(given.dtype)[0])
            exact = generic or np.isnat(given) or bool(cast.astype(given.dtype) == given)
        except ValueError as error:
            raise ValueError(f"not a value of {self.name}: {value!r}") from error
        if not exact:
            raise ValueError(f"{value!r} is not a whole number of {self.code}, or out of its range")
        return from_bits(to_bits(cast), self.dtype)

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept a JSON integer of 64 bits, or ``"NaT"``; in v1 and v2 also an integer written as a float."""
        if value == "NaT":
            return self._make(NAT)
        if zarr_format < 3 and isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not NAT <= value < 2**63:
            raise fill_error(self.name, value, 'a JSON integer of 64 bits, or "NaT"')
        return self._make(value)

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return the count; NaT is ``"NaT"`` in v3 and −2**63 in v1 and v2."""
        bits = to_bits(fill)
        count = bits - 2**64 if bits >= 2**63 else bits
        return "NaT" if count == NAT and zarr_format == 3 else count


class DateTime64(_Time):
    """A moment since 1970-01-01, without time zone."""

    name = "numpy.datetime64"
    kind = "M"


class TimeDelta64(_Time):
    """A duration."""

    name = "numpy.timedelta64"
    kind = "m"
