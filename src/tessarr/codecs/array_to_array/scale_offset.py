"""The ``scale_offset`` codec: (value − offset) × scale, in the arithmetic of the data type.

Source: zarr-extensions, "scale_offset". v3 name ``scale_offset``; numcodecs' ``fixedscaleoffset`` is this, rounding and
a cast in one, see `tessarr.codecs.numcodecs`.

>>> ScaleOffsetCodec.from_json({"offset": 5, "scale": 0.1}).to_json()
{'name': 'scale_offset', 'configuration': {'offset': 5, 'scale': 0.1}}

Both members are always written; zarr-python leaves out an offset of 0 and a scale of 1, and such documents are read. Both
are spelled like fill values of the array's type. The fill value is encoded as well. A result that the type cannot hold is
an error: an integer out of range, a quotient that is not an integer, a float overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tessarr.codecs.array_to_array.numbers import is_foreign, limits, number_kind
from tessarr.codecs.base import ArrayToArray, ChunkSpec
from tessarr.codecs.members import check_members, read_members
from tessarr.errors import CodecError, TessarrError
from tessarr.types import JSON, AnyArray, JSONObject


def _check_scalar(value: object) -> str | None:
    fine = isinstance(value, int | float | str) and not isinstance(value, bool)
    return None if fine else f"must be a number, or a string that stands for one; got {value!r}"


_CHECKS = {"offset": _check_scalar, "scale": _check_scalar}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOffsetCodec(ArrayToArray):
    """Scale and shift values within their data type."""

    name = "scale_offset"
    offset: int | float | str = 0
    """Subtracted when encoding; spelled as a fill value in JSON."""
    scale: int | float | str = 1
    """Multiplied when encoding."""

    def __post_init__(self) -> None:
        for name in _CHECKS:
            value = getattr(self, name)
            object.__setattr__(self, name, value.item() if isinstance(value, np.generic) else value)
        check_members(self.name, {"offset": self.offset, "scale": self.scale}, _CHECKS)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"offset": self.offset, "scale": self.scale}}

    def _scalars(self, spec: ChunkSpec) -> tuple[AnyArray, AnyArray]:
        offset = self._scalar("offset", self.offset, spec)
        scale = self._scalar("scale", self.scale, spec)
        if scale == 0:
            raise CodecError("scale must be non-zero: every value would be encoded as 0", codec=self.name)
        return offset, scale

    def _scalar(self, name: str, value: JSON, spec: ChunkSpec) -> AnyArray:
        try:
            return spec.data_type.parse_fill(value, 3)
        except (TessarrError, ValueError, TypeError) as error:
            raise CodecError(
                f"{name} value {value!r} is not representable in dtype {spec.data_type.name}: {error}", codec=self.name
            ) from error

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        if number_kind(spec.data_type) is None:
            raise CodecError(
                "scale_offset only supports integer and floating-point data types",
                codec=self.name,
                got=spec.data_type.name,
            )
        return spec.with_(fill=self.encode(spec.fill.reshape(1), spec).reshape(()))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        offset, scale = self._scalars(spec)
        if number_kind(spec.data_type) == "integer":
            low, high = int(offset), int(scale)
            self._check_range(chunk, spec, lambda x: x - low, lambda x: (x - low) * high)
            return _wide((_wide(chunk) - _wide(offset)) * _wide(scale)).astype(spec.dtype)
        with np.errstate(all="ignore"):
            return self._check_finite(((chunk - offset) * scale).astype(spec.dtype, copy=False), chunk)

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        offset, scale = self._scalars(spec)
        if number_kind(spec.data_type) == "float":
            with np.errstate(all="ignore"):
                return self._check_finite((chunk / scale + offset).astype(spec.dtype, copy=False), chunk)
        divisor, shift = int(scale), int(offset)
        if divisor == 0 or (_wide(chunk) % _wide(scale)).any():
            raise self._unrepresentable(spec, f"a value that is not a multiple of the scale {divisor}")
        self._check_range(chunk, spec, lambda x: x // divisor, lambda x: x // divisor + shift)
        return _wide(_wide(chunk) // _wide(scale) + _wide(offset)).astype(spec.dtype)

    def _check_range(self, chunk: AnyArray, spec: ChunkSpec, *steps: Any) -> None:
        """Check the smallest and the largest value: every step is monotonic, so they bound all others."""
        if chunk.size == 0:
            return
        low, high = limits(spec.data_type)
        wide = _wide(chunk)
        for value in (int(wide.min()), int(wide.max())):
            for step in steps:
                if not low <= step(value) <= high:
                    raise self._unrepresentable(spec, f"{step(value)} from {value}")

    def _check_finite(self, result: AnyArray, source: AnyArray) -> AnyArray:
        lost = ~np.isfinite(result) & np.isfinite(source)
        if lost.any():
            raise CodecError(
                "a value does not fit the data type after scaling",
                codec=self.name,
                expected=f"finite values of {result.dtype}",
                got=f"{source[lost].reshape(-1)[0]} × scale {self.scale}, offset {self.offset}",
            )
        return result

    def _unrepresentable(self, spec: ChunkSpec, got: str) -> CodecError:
        low, high = limits(spec.data_type)
        return CodecError(
            f"a value does not fit the data type after scaling: it is outside the range of dtype {spec.data_type.name}",
            codec=self.name,
            expected=f"integers from {low} to {high}",
            got=got,
            hint="Scale in a wider type: put cast_value before scale_offset",
        )


ScaleOffset = ScaleOffsetCodec


def _wide(values: AnyArray) -> AnyArray:
    """Convert integers of 2 and 4 bits to int8, which NumPy can compute with; others to native byte order."""
    native = np.dtype(np.int8) if is_foreign(values.dtype) else values.dtype.newbyteorder("=")
    return values.astype(native, copy=False)
