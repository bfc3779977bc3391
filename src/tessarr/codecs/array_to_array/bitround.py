"""The ``bitround`` codec: fewer significant bits, so that what follows compresses better. Lossy.

Source: zarr-extensions, "bitround"; Klöwer et al. 2021, doi:10.1038/s43588-021-00156-2. v3 name ``bitround``; the v2 id
``bitround`` and the deprecated name ``numcodecs.bitround`` are the same for floats and refuse everything else.

>>> BitRoundCodec.from_json({"keepbits": 10}).to_json()
{'name': 'bitround', 'configuration': {'keepbits': 10}}

Floats and complex numbers keep `keepbits` bits of the mantissa, rounded half to even. NaN and infinities are left as
they are (numcodecs' arithmetic turns NaNs with certain payloads into other values). Integers, and times as integers,
keep `keepbits` (at least 1) bits from the highest bit that is set, rounded half to even; negative ones by their
magnitude (zarrs rounds the bits of their two's complement), and a value that would round past the largest of its type
is cut off instead. Decoding changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.base import ArrayToArray, ChunkSpec
from tessarr.codecs.members import check_members, integer, read_members
from tessarr.errors import CodecError
from tessarr.types import JSON, AnyArray, AnyDType, JSONObject

_CHECKS = {"keepbits": integer(0)}

MANTISSA: dict[AnyDType, int] = {np.dtype("f2"): 10, np.dtype("f4"): 23, np.dtype("f8"): 52}
"""Explicit bits of the mantissa, by native dtype."""


@dataclass(frozen=True, slots=True)
class BitRoundCodec(ArrayToArray):
    """Round values to a number of significant bits."""

    name = "bitround"
    keepbits: int
    """Bits to keep: of the mantissa for floats, from the highest set bit for integers."""

    def __post_init__(self) -> None:
        check_members(self.name, {"keepbits": self.keepbits}, _CHECKS)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS, required=("keepbits",)))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"keepbits": self.keepbits}}

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """See `ArrayToArray.encoded_spec`. The fill value is rounded with the data."""
        if spec.dtype.kind not in "iufcmM" and _mantissa(spec.dtype) is None:
            raise CodecError(
                f"bitround cannot round {spec.data_type.name}", codec=self.name, expected="numbers or times"
            )
        if self.keepbits == 0 and spec.dtype.kind in "iumM":
            raise CodecError("bitround cannot keep 0 bits of integers", codec=self.name, expected="at least 1 bit")
        return spec.with_(fill=self.encode(spec.fill.reshape(1), spec).reshape(()))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        native = np.ascontiguousarray(chunk, chunk.dtype.newbyteorder("="))
        if native.dtype.kind == "c":
            parts = native.reshape(-1).view(f"f{native.dtype.itemsize // 2}")
            return round_floats(parts, self.keepbits).view(native.dtype).reshape(chunk.shape)
        if native.dtype.kind in "iu":
            return _round_integers(native, self.keepbits)
        if native.dtype.kind in "mM":
            whole = _round_integers(native.view("i8"), self.keepbits).view(native.dtype)
            return np.where(np.isnat(native), native, whole)
        return round_floats(native, self.keepbits)

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        """Return `chunk` itself: rounding is not undone."""
        return chunk


def _mantissa(dtype: AnyDType) -> int | None:
    if dtype.name == "bfloat16":
        return 7
    return MANTISSA.get(dtype.newbyteorder("=")) if dtype.kind == "f" else None


def round_floats(values: AnyArray, keepbits: int) -> AnyArray:
    """Round `values` half to even to `keepbits` bits of mantissa; return `values` itself when no bit is dropped."""
    bits = _mantissa(values.dtype)
    if bits is None:
        raise CodecError(f"bitround cannot round {values.dtype}", codec="bitround", expected="floats")
    drop = bits - keepbits
    if drop <= 0:
        return values
    order = values.dtype.byteorder if values.dtype.kind == "f" else "="
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    words = values.view(unsigned.newbyteorder(order)).astype(unsigned)
    one = unsigned.type(1)
    shift = unsigned.type(drop)
    rounded = words + ((words >> shift & one) + (one << unsigned.type(drop - 1)) - one)
    rounded = rounded >> shift << shift
    exponent = unsigned.type(((1 << (8 * values.dtype.itemsize - 1)) - 1) >> bits << bits)
    special = (words & exponent) == exponent
    result = np.where(special, words, rounded).astype(unsigned.newbyteorder(order), copy=False)
    return result.view(values.dtype)


def _round_integers(values: AnyArray, keepbits: int) -> AnyArray:
    width = 8 * values.dtype.itemsize
    if keepbits >= width:
        return values
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    words = values.view(unsigned)
    negative = values < 0
    magnitude = np.where(negative, ~words + unsigned.type(1), words).astype(np.uint64)
    drop = np.maximum(_bit_length(magnitude) - keepbits, 0).astype(np.uint64)
    one = np.uint64(1)
    kept = magnitude >> drop
    rest = magnitude - (kept << drop)
    half = (one << drop) >> one
    up = (rest > half) | ((rest == half) & (drop > 0) & ((kept & one) == one))
    rounded = (kept + up) << drop
    limit = np.uint64((1 << (width - (values.dtype.kind == "i"))) - 1)
    rounded = np.where((rounded > limit) | (rounded < kept << drop), kept << drop, rounded).astype(unsigned)
    return np.where(negative, ~rounded + unsigned.type(1), rounded).astype(unsigned).view(values.dtype)


def _bit_length(magnitude: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the position of the highest set bit plus one; 0 for 0."""
    length = np.zeros(magnitude.shape, np.int64)
    rest = magnitude.copy()
    for step in (32, 16, 8, 4, 2, 1):
        high = rest >> np.uint64(step)
        wide = high > 0
        length += np.where(wide, step, 0)
        rest = np.where(wide, high, rest)
    return length + (rest > 0)
