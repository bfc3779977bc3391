"""The ``cast_value`` codec: the same values in another data type.

Source: zarr-extensions, "cast_value". v3 name ``cast_value``; no v2 id (numcodecs' ``astype`` converts unchecked).

>>> CastValueCodec(data_type="uint8", out_of_range="clamp").to_json()
{'name': 'cast_value', 'configuration': {'data_type': 'uint8', 'out_of_range': 'clamp'}}

A value in ``scalar_map`` is replaced by its entry. Any other value keeps its value if the target type has it, else it is
rounded as ``rounding`` says. A value outside the target's range is clamped or wrapped, as ``out_of_range`` says, or is an
error. Clamping to a float type with infinities gives infinities, as in zarr-python's implementation. NaN is an error
where the target type has no NaN. The fill value must survive the round trip. Integers and floats only, those of
`ml_dtypes` included; that package rounds float64 to its types. Decoding follows the same rules.
zarr-python's implementation refuses to clamp infinities to integers, against the registered text.

On reading, ``"out_of_range": "error"`` of earlier drafts means the same as no ``out_of_range``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.codecs.array_to_array.numbers import holds, is_foreign, largest, limits, number_kind
from tessarr.codecs.base import ArrayToArray, ChunkSpec
from tessarr.codecs.members import Check, check_members, choice, optional, read_members
from tessarr.dtypes.base import DataType
from tessarr.errors import CodecError, DataTypeValidationError, MetadataValidationError, TessarrError, problems_of
from tessarr.types import JSON, AnyArray, AnyDType, JSONObject

Rounding = Literal["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]
OutOfRange = Literal["clamp", "wrap"]
Pairs: TypeAlias = tuple[tuple[JSON, JSON], ...]


def _check_map(value: object) -> str | None:
    if not isinstance(value, Mapping) or set(value) - {"encode", "decode"}:
        return f"must be an object with encode and decode, got {value!r}"
    for direction, pairs in value.items():
        if isinstance(pairs, Mapping):
            continue
        if not isinstance(pairs, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
            return f"{direction} must be a list of pairs, got {pairs!r}"
    return None


_CHECKS: Mapping[str, Check] = {
    "rounding": choice("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"),
    "out_of_range": optional(choice("clamp", "wrap", "error")),
    "scalar_map": optional(_check_map),
}


@dataclass(frozen=True, slots=True, init=False)
class CastValueCodec(ArrayToArray):
    """Convert values to another data type."""

    name = "cast_value"
    data_type: DataType
    """The stored data type."""
    rounding: Rounding
    out_of_range: OutOfRange | None
    """What happens to values outside the target's range; ``None``: an error."""
    encode_map: Pairs | None
    """Pairs of a decoded and a stored value, as JSON fill values; ``None``: not stated."""
    decode_map: Pairs | None
    """Pairs of a stored and a decoded value."""

    def __init__(
        self,
        *,
        data_type: str | Mapping[str, JSON] | DataType,
        rounding: Rounding = "nearest-even",
        out_of_range: OutOfRange | Literal["error"] | None = None,
        scalar_map: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up the codec; `scalar_map`: ``{"encode": [[from, to], …], "decode": …}``, or with mappings for the
        lists.
        """
        values = {"rounding": rounding, "out_of_range": out_of_range, "scalar_map": scalar_map}
        check_members(self.name, values, _CHECKS)
        object.__setattr__(self, "data_type", _data_type(data_type))
        object.__setattr__(self, "rounding", rounding)
        object.__setattr__(self, "out_of_range", None if out_of_range == "error" else out_of_range)
        for direction in ("encode", "decode"):
            object.__setattr__(self, f"{direction}_map", _pairs(scalar_map, direction))

    @property
    def dtype(self) -> DataType:
        """`data_type`, under zarr-python's name."""
        return self.data_type

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        checks = {**_CHECKS, "data_type": lambda _: None}
        return cls(**read_members(cls.name, configuration, checks, required=("data_type",)))

    def to_json(self) -> JSONObject:
        """See `Codec.to_json`. Members with their default are left out, as zarr-python does."""
        configuration: JSONObject = {"data_type": self.data_type.to_json()}
        if self.rounding != "nearest-even":
            configuration["rounding"] = self.rounding
        if self.out_of_range is not None:
            configuration["out_of_range"] = self.out_of_range
        maps: JSONObject = {
            name: [list(pair) for pair in pairs]
            for name, pairs in (("encode", self.encode_map), ("decode", self.decode_map))
            if pairs is not None
        }
        if maps:
            configuration["scalar_map"] = maps
        return {"name": self.name, "configuration": configuration}

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        for data_type in (spec.data_type, self.data_type):
            if number_kind(data_type) is None:
                raise CodecError(
                    f"cast_value cannot convert {data_type.name}; it only supports integer and floating-point data types",
                    codec=self.name,
                )
        if self.out_of_range == "wrap" and number_kind(self.data_type) != "integer":
            raise CodecError("cast_value can wrap only to integers", codec=self.name, got=self.data_type.name)
        fill = self.encode(spec.fill.reshape(1), spec).reshape(())
        encoded = spec.with_(data_type=self.data_type, fill=fill)
        back = self.decode(fill.reshape(1), spec).reshape(())
        if not (back == spec.fill or (back != back and spec.fill != spec.fill)):  # NaN
            raise CodecError(
                "the fill value does not survive cast_value",
                codec=self.name,
                expected=str(spec.fill),
                got=f"{back} after a cast to {self.data_type.name} and back",
                hint="Choose a fill value that both data types hold, or map it in scalar_map",
            )
        self._table(self.decode_map, self.data_type, spec.data_type)
        return encoded

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return self._cast(chunk, spec.data_type, self.data_type, self.encode_map)

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        return self._cast(chunk, self.data_type, spec.data_type, self.decode_map)

    def _table(self, pairs: Pairs | None, source: DataType, target: DataType) -> list[tuple[Any, Any]]:
        try:
            return [(source.parse_fill(key, 3), target.parse_fill(value, 3)) for key, value in pairs or ()]
        except (TessarrError, ValueError, TypeError, OverflowError) as error:
            raise CodecError(
                f"scalar_map holds a value not representable in dtype {source.name} or {target.name}: {error}",
                codec=self.name,
            ) from error

    def _cast(self, chunk: AnyArray, source: DataType, target: DataType, pairs: Pairs | None) -> AnyArray:
        values = _plain(chunk, source)
        mapped = np.zeros(chunk.shape, bool)
        replaced: list[tuple[npt.NDArray[np.bool_], JSON]] = []
        for key, value in self._table(pairs, source, target):
            scalar = _plain(key, source)
            where = (np.isnan(values) if scalar != scalar else values == scalar) & ~mapped  # NaN
            mapped |= where
            replaced.append((where, value))
        if mapped.any():
            values = np.where(mapped, np.zeros((), values.dtype), values)
        if number_kind(target) == "integer":
            out = self._to_integer(values, target)
        else:
            out = self._to_float(values, target)
        for where, value in replaced:
            out[where] = value
        return out

    def _to_integer(self, values: AnyArray, target: DataType) -> AnyArray:
        low, high = limits(target)
        if values.dtype.kind == "f":
            return self._float_to_integer(values, target)
        info = np.iinfo(values.dtype)
        if info.min < low or info.max > high:
            lowest, highest = (int(values.min()), int(values.max())) if values.size else (0, 0)
            if lowest < low or highest > high:
                if self.out_of_range is None:
                    raise self._outside(lowest if lowest < low else highest, target)
                if self.out_of_range == "clamp":
                    values = np.clip(values, max(low, info.min), min(high, info.max))
                else:
                    return _wrapped(values.astype(np.uint64), target)
        return _stored(values, target)

    def _float_to_integer(self, values: AnyArray, target: DataType) -> AnyArray:
        low, high = limits(target)
        if np.isnan(values).any():
            raise self._outside(float("nan"), target, "Map NaN in scalar_map")
        whole = _round(values, self.rounding)
        # Compare as floats: low is a power of two or 0, high + 1 is a power of two, so both are exact.
        below, above = whole < float(low), whole >= float(high + 1)
        outside = below | above
        if outside.any():
            if self.out_of_range is None or (self.out_of_range == "wrap" and np.isinf(whole).any()):
                raise self._outside(float(values[outside].reshape(-1)[0]), target)
            if self.out_of_range == "wrap":
                rest = np.fmod(whole, float(1 << 64))
                magnitude = np.abs(rest).astype(np.uint64)
                return _wrapped(np.where(rest < 0, ~magnitude + np.uint64(1), magnitude), target)
            whole = np.where(outside, 0.0, whole)
        wide = np.uint64 if low == 0 else np.int64
        integers = whole.astype(wide)
        if outside.any():
            integers = np.where(below, wide(low), np.where(above, wide(high), integers))
        return _stored(integers, target)

    def _to_float(self, values: AnyArray, target: DataType) -> AnyArray:
        dtype = target.dtype if is_foreign(target.dtype) else target.dtype.newbyteorder("=")
        if values.dtype.kind == "f" and np.isnan(values).any() and not holds(dtype, float("nan")):
            raise self._outside(float("nan"), target, "Map NaN in scalar_map")
        with np.errstate(all="ignore"):
            out = values.astype(dtype)
            finite = np.isfinite(out.astype(np.float64)) & ~_saturated(values, dtype)
        infinite = np.isinf(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
        unbounded = holds(dtype, float("inf"))
        lost = (~finite & ~np.isnan(values) & ~infinite) | (infinite & (not unbounded))
        if self.rounding != "nearest-even":
            _direct(values, out, self.rounding, lost, ~infinite)
        if lost.any():
            if self.out_of_range is None:
                raise self._outside(values[lost].reshape(-1)[0], target)
            limit = np.inf if unbounded else largest(dtype)
            out[lost] = np.where(values[lost] < 0, -limit, limit).astype(dtype)
        return out

    def _outside(self, value: object, target: DataType, hint: str | None = None) -> CodecError:
        return CodecError(
            f"cast_value cannot turn a value into {target.name}",
            codec=self.name,
            expected=f"values of {target.name}",
            got=str(value),
            hint=hint or "Set out_of_range to 'clamp' or 'wrap', or map the value in scalar_map",
        )


CastValue = CastValueCodec


def _data_type(value: str | Mapping[str, JSON] | DataType) -> DataType:
    from tessarr.dtypes.parse import from_v3

    if isinstance(value, DataType):
        return value
    try:
        return from_v3(value)
    except DataTypeValidationError as error:
        problems = problems_of(error, "data_type")
        raise MetadataValidationError("invalid cast_value codec", problems, codec="cast_value") from error


def _pairs(scalar_map: Mapping[str, Any] | None, direction: str) -> Pairs | None:
    if scalar_map is None or scalar_map.get(direction) is None:
        return None
    pairs = scalar_map[direction]
    return tuple((key, value) for key, value in (pairs.items() if isinstance(pairs, Mapping) else pairs))


def _plain(values: AnyArray, data_type: DataType) -> AnyArray:
    """Return values in native byte order; types of `ml_dtypes` as the NumPy type that holds all their values."""
    if is_foreign(values.dtype):
        return values.astype(np.int8 if number_kind(data_type) == "integer" else np.float32)
    if values.dtype.kind == "f" and values.dtype.itemsize == 2:
        return values.astype(np.float32)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _stored(values: AnyArray, target: DataType) -> AnyArray:
    """Cast integers within the target's range to the target type."""
    narrow = values.astype(np.int8) if is_foreign(target.dtype) else values
    return np.array(narrow.astype(target.dtype))


def _wrapped(words: npt.NDArray[np.uint64], target: DataType) -> AnyArray:
    """Truncate two's complement numbers to the width of the target type."""
    low, high = limits(target)
    bits = (high - low).bit_length()
    if bits < 8:
        kept = (words & np.uint64(high - low)).astype(np.int16)
        return _stored(np.where(kept > high, kept - (1 << bits), kept), target)
    unsigned = words.astype(f"u{bits // 8}")
    return np.array((unsigned.view(f"i{bits // 8}") if low else unsigned).astype(target.dtype))


def _round(values: AnyArray, rounding: Rounding) -> AnyArray:
    """Round to whole numbers, as float64."""
    wide = values.astype(np.float64)
    if rounding == "nearest-away":
        whole = np.trunc(wide)
        with np.errstate(invalid="ignore"):  # infinity minus infinity
            return np.where(np.abs(wide - whole) >= 0.5, whole + np.copysign(1.0, wide), whole)
    how = {"nearest-even": np.rint, "towards-zero": np.trunc, "towards-positive": np.ceil, "towards-negative": np.floor}
    return how[rounding](wide)


def _saturated(values: AnyArray, dtype: AnyDType) -> npt.NDArray[np.bool_]:
    """Find where `ml_dtypes`, in types without infinity, gives the largest number for a value that rounds past it."""
    if not is_foreign(dtype) or holds(dtype, float("inf")):
        return np.zeros(values.shape, bool)
    limit, step = largest(dtype), _last_step(dtype)
    magnitude, end = np.abs(values.astype(np.float64)), limit + step / 2
    return (magnitude >= end) if limit / step % 2 else (magnitude > end)  # ties go to even


def _last_step(dtype: AnyDType) -> float:
    """Return the distance of the two largest finite values."""
    below = np.nextafter(np.array(largest(dtype), dtype), np.array(0, dtype))
    return largest(dtype) - float(below)


def _direct(
    values: AnyArray,
    out: AnyArray,
    rounding: Rounding,
    lost: npt.NDArray[np.bool_],
    where: npt.NDArray[np.bool_],
) -> None:
    """Correct results of rounding to nearest, in place, for the mode `rounding`; set `lost` outside the range.

    Inexact elements are corrected one by one with exact fractions: these modes are rare. A value is outside the range
    when rounding it with unlimited exponents leads past the largest number.
    """
    flat_in, flat_out, flat_lost = values.reshape(-1), out.reshape(-1), lost.reshape(-1)
    limit = Fraction(largest(out.dtype))
    step = Fraction(_last_step(out.dtype))
    for index in np.flatnonzero(where & ~np.isnan(values)).tolist():
        exact = Fraction(int(flat_in[index]) if flat_in.dtype.kind in "iu" else float(flat_in[index]))
        got = float(flat_out[index])
        if np.isfinite(got) and Fraction(got) == exact:
            continue
        up_wanted = rounding == "towards-positive" or (rounding == "towards-zero" and exact < 0)
        if abs(exact) > limit:
            nearest, outward = rounding == "nearest-away", up_wanted == (exact > 0)
            flat_lost[index] = abs(exact) >= limit + (step / 2 if nearest else step) or (outward and not nearest)
            flat_out[index] = float(limit) if exact > 0 else -float(limit)
            continue
        up = _neighbour(flat_out, index, exact, above=True)
        down = _neighbour(flat_out, index, exact, above=False)
        if rounding != "nearest-away":
            flat_out[index] = up if up_wanted else down
        elif exact == (Fraction(float(up)) + Fraction(float(down))) / 2:
            flat_out[index] = up if exact > 0 else down


def _neighbour(flat: AnyArray, index: int, exact: Fraction, *, above: bool) -> Any:
    """Return the nearest value of the dtype above or below `exact`; ``flat[index]`` is the nearest on some side."""
    got = flat[index]
    if Fraction(float(got)) > exact if above else Fraction(float(got)) < exact:
        return got
    goal = np.array(np.inf if above else -np.inf).astype(flat.dtype)
    return np.nextafter(got, goal)
