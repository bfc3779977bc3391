"""numcodecs filters that turn elements into other elements: delta, fixedscaleoffset, quantize, astype, bitround.

numcodecs does the arithmetic, so that values agree with it to the bit, its silent wrap-around included; the sizes are
checked here. Data types in the configuration are NumPy type strings (``"<f4"``) or v3 names that NumPy knows
(``"float32"``).

Source: numcodecs 0.16.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tessarr.codecs.members import Check, integer, optional
from tessarr.codecs.numcodecs.coders import Bytes, Coder, as_buffer, run
from tessarr.codecs.raw import corrupt, flat_bytes, size_error
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.types import JSON, AnyArray, AnyDType, Buffer

_DTYPE = re.compile(r"[<>=|]?([biufcmM?]\d*|u?int\d+|float\d+|complex\d+|bool)(\[\d*[a-z]+\])?", re.IGNORECASE)


def element_dtype(value: object) -> AnyDType:
    """Parse a dtype of plain numbers, booleans or times in a configuration. Raises `ValueError`."""
    if isinstance(value, np.dtype | type) and np.dtype(value).kind in "biufcmM":
        return np.dtype(value)
    if not isinstance(value, str) or not _DTYPE.fullmatch(value):
        raise ValueError(f"must be the type string of numbers, such as '<f4', got {value!r}")
    try:
        return np.dtype(value)
    except TypeError as error:
        raise ValueError(f"is not a NumPy data type: {value!r}") from error


def _dtype_check(value: object) -> str | None:
    try:
        element_dtype(value)
    except ValueError as error:
        return str(error)
    return None


def _number(value: object) -> str | None:
    fine = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return None if fine else f"must be a number, got {value!r}"


class ElementCoder(Coder):
    """Map elements of one size to elements of one size."""

    decoded_member: ClassVar[str] = "dtype"
    encoded_member: ClassVar[str] = "astype"
    kinds: ClassVar[str] = "biufcmM"
    """NumPy kinds that the filter supports."""

    def __init__(self, config: Mapping[str, JSON]) -> None:
        super().__init__(config)
        for name in (self.decoded_member, self.encoded_member):
            value = self.members.get(name)
            if value is not None and element_dtype(value).kind not in self.kinds:
                problem = Problem((name,), "value", f"must be of kind {self.kinds!r}, got {value!r}")
                raise MetadataValidationError(f"invalid {self.codec_id} codec", [problem], codec=self.codec_id)

    @property
    def decoded(self) -> AnyDType:
        """The dtype that `encode` takes. Raises `CodecError` while the dtype is unknown."""
        value = self.members.get(self.decoded_member)
        if value is None:
            raise CodecError(f"the {self.codec_id} codec needs a {self.decoded_member}", codec=self.codec_id)
        return element_dtype(value)

    @property
    def encoded(self) -> AnyDType:
        """The dtype that `encode` returns."""
        value = self.members.get(self.encoded_member)
        return self.decoded if value is None else element_dtype(value)

    def canonical(self) -> dict[str, JSON]:
        """Return the configuration with both data types as type strings, as numcodecs writes it."""
        members = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.members.items()
        }
        if self.members.get(self.decoded_member) is None:
            return members
        types = {self.decoded_member: self.decoded.str, self.encoded_member: self.encoded.str}
        return {**members, **types}

    def encoded_size(self, nbytes: int) -> int:
        count, rest = divmod(nbytes, self.decoded.itemsize)
        if rest:
            raise CodecError(
                f"{self.codec_id} needs whole elements",
                codec=self.codec_id,
                expected=f"a multiple of {self.decoded.itemsize} bytes",
                got=nbytes,
            )
        return count * self.encoded.itemsize

    def _numcodec(self) -> Any:
        from tessarr.common.numcodecs import numcodecs

        return numcodecs.get_codec({"id": self.codec_id, **self.canonical()})

    def encode(self, data: AnyArray) -> Buffer:
        if data.size == 0:
            return np.empty(0, self.encoded)
        flat = flat_bytes(data).view(self.decoded)
        return as_buffer(run(self.codec_id, lambda: self._numcodec().encode(flat)))

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        count, rest = divmod(len(data), self.encoded.itemsize)
        if rest:
            raise corrupt(self.codec_id, f"{len(data)} bytes are not a whole number of elements of {self.encoded}")
        if nbytes is not None and count * self.decoded.itemsize != nbytes:
            raise size_error(self.codec_id, nbytes, f"{count} elements of {self.decoded}")
        if count == 0:
            return b""
        return flat_bytes(run(self.codec_id, lambda: self._numcodec().decode(data.view(self.encoded))))


class Delta(ElementCoder):
    """``delta``: the first element, then differences."""

    codec_id = "delta"
    checks: ClassVar[Mapping[str, Check]] = {"dtype": _dtype_check, "astype": optional(_dtype_check)}
    defaults: ClassVar[Mapping[str, JSON]] = {"dtype": None, "astype": None}


class FixedScaleOffset(ElementCoder):
    """``fixedscaleoffset``: round((x − offset) × scale)."""

    codec_id = "fixedscaleoffset"
    checks: ClassVar[Mapping[str, Check]] = {
        "scale": _number,
        "offset": _number,
        "dtype": optional(_dtype_check),
        "astype": optional(_dtype_check),
    }
    defaults: ClassVar[Mapping[str, JSON]] = {"scale": None, "offset": None, "dtype": None, "astype": None}
    required = ("scale", "offset")


class Quantize(ElementCoder):
    """``quantize``: round so that a number of decimal digits remains."""

    codec_id = "quantize"
    checks: ClassVar[Mapping[str, Check]] = {
        "digits": integer(-400, 400),
        "dtype": optional(_dtype_check),
        "astype": optional(_dtype_check),
    }
    defaults: ClassVar[Mapping[str, JSON]] = {"digits": None, "dtype": None, "astype": None}
    required = ("digits",)
    kinds = "f"


class AsType(ElementCoder):
    """``astype``: NumPy's conversion, wrap-around and loss included."""

    codec_id = "astype"
    checks: ClassVar[Mapping[str, Check]] = {"encode_dtype": _dtype_check, "decode_dtype": optional(_dtype_check)}
    defaults: ClassVar[Mapping[str, JSON]] = {"encode_dtype": None, "decode_dtype": None}
    required = ("encode_dtype",)
    decoded_member = "decode_dtype"
    encoded_member = "encode_dtype"


class BitRound(Coder):
    """``bitround`` of floats; decoding changes nothing."""

    codec_id = "bitround"
    checks: ClassVar[Mapping[str, Check]] = {"keepbits": integer(0, 52)}
    required = ("keepbits",)

    def encoded_size(self, nbytes: int) -> int:
        return nbytes

    def encode(self, data: AnyArray) -> Buffer:
        """Encode floats."""
        from tessarr.codecs.array_to_array.bitround import MANTISSA, round_floats

        if data.dtype not in MANTISSA or self.members["keepbits"] > MANTISSA[data.dtype.newbyteorder("=")]:
            raise CodecError(
                "bitround cannot keep so many bits of such elements",
                codec=self.codec_id,
                expected="float16 (up to 10 bits), float32 (23) or float64 (52)",
                got=f"{self.members['keepbits']} bits of {data.dtype}",
            )
        return round_floats(data, self.members["keepbits"])

    def decode(self, data: Bytes, nbytes: int | None) -> Buffer:
        if nbytes is not None and len(data) != nbytes:
            raise size_error(self.codec_id, nbytes, f"{len(data)} bytes")
        return data
