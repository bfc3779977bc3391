"""Elements of a fixed number of bytes or characters: raw bits, NUL-padded bytes, NumPy's ``U``.

========================  =============================================  =======================  =================
class                     v3                                             v2                       fill value
========================  =============================================  =======================  =================
`RawBytes`                ``"r24"`` (core)                               ``"|V3"``                list of integers
`RawBytes`                ``raw_bytes`` (zarr-python)                    ``"|V3"``                Base64
`NullTerminatedBytes`     ``null_terminated_bytes`` (zarr-python)        ``"|S3"``                Base64
`FixedLengthUTF32`        ``fixed_length_utf32`` (registered)            ``"<U3"``                the text
========================  =============================================  =======================  =================

The three named v3 forms take ``{"length_bytes": N}``. In v2 the fill value is Base64 for ``V`` and ``S``, text for
``U``.

>>> RawBytes(length=3).to_json(), FixedLengthUTF32(length=12).to_json()
('r24', {'name': 'fixed_length_utf32', 'configuration': {'length_bytes': 48}})

Differences: `raw_bytes` and `null_terminated_bytes` are not registered; a document with ``raw_bytes`` is written
back with that name. v2 fill values ``0`` and ``""``, which some writers store instead of Base64, are read as zero bytes, with a
warning for ``S`` and ``V``.
Source: Zarr v3.1 core, "Data types" (r*); Zarr v2, "Fill value encoding".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from tessarr.dtypes.base import DataType, Scalar
from tessarr.dtypes.element import (
    MAX_ITEMSIZE,
    Element,
    Endianness,
    Ordered,
    as_scalar,
    check_length,
    check_text,
    decode_base64,
    encode_base64,
    fill_error,
    from_bytes,
    is_old_zero,
    length_bytes_of,
    named_by_format,
    no_configuration,
    old_zero_diagnostics,
    read_by_format,
    refused_fill,
    text_of,
)
from tessarr.errors import DataTypeValidationError
from tessarr.types import JSON, AnyDType, ZarrFormat


class _FixedBytes(Element):
    """Base class of types with a stated number of bytes."""

    length: int
    """Bytes per element."""
    kind: str

    def __init__(self, *, length: int) -> None:
        vars(self)["length"] = check_length(length)

    def _key(self) -> tuple[object, ...]:
        return (self.length,)

    def _arguments(self) -> Mapping[str, object]:
        return {"length": self.length}

    @property
    def dtype(self) -> AnyDType:
        """NumPy's ``V`` or ``S`` of this length."""
        return np.dtype(f"{self.kind}{self.length}")

    def to_v2(self) -> JSON:
        """Return ``"|V3"`` or ``"|S3"``."""
        return f"|{self.kind}{self.length}"

    def default_fill(self) -> Scalar:
        """Return zero bytes."""
        return self._padded(b"")

    def _padded(self, data: bytes) -> Scalar:
        return from_bytes(data.ljust(self.length, b"\0"), self.dtype)

    def fill_diagnostics(self, value: JSON, zarr_format: ZarrFormat) -> tuple[str, ...]:
        return old_zero_diagnostics(str(self.to_v2()), value, zarr_format)

    def _decode(self, value: JSON, zarr_format: ZarrFormat) -> bytes:
        """Decode a Base64 fill value, or the zeros of old v2 writers."""
        if zarr_format < 3 and is_old_zero(value):
            return bytes(self.length)
        return decode_base64(self.name, value)


class RawBytes(_FixedBytes):
    """Bytes without meaning; v3 core ``r<N>`` (N bits), v2 ``|V<n>`` (n bytes).

    Equal to the same length in either v3 spelling; `to_json` keeps the spelling that was read, ``r<N>`` by default.
    """

    name = "raw_bytes"
    kind = "V"
    _spelling = "r"

    @classmethod
    @read_by_format
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:
        """Parse ``r<N>``, or ``raw_bytes`` with ``length_bytes``."""
        if name == "raw_bytes":
            made = cls(length=length_bytes_of(name, configuration))
            vars(made)["_spelling"] = "raw_bytes"
            return made
        found = re.fullmatch(r"r([1-9][0-9]{0,11})", name)
        nbits = int(found[1]) if found else 0
        if nbits == 0 or nbits % 8 or nbits // 8 > MAX_ITEMSIZE:
            raise DataTypeValidationError(
                f"invalid data type {name!r}",
                expected="r<N>, N being the number of bits: a positive multiple of 8, such as r24",
                hint="A configuration with length_bytes belongs to the name raw_bytes",
            )
        no_configuration(name, configuration)
        return cls(length=nbits // 8)

    @named_by_format
    def to_json(self) -> JSON:
        """Return ``r<N>``, or ``raw_bytes`` where that was read."""
        if self._spelling == "raw_bytes":
            return {"name": "raw_bytes", "configuration": {"length_bytes": self.length}}
        return f"r{8 * self.length}"

    def cast_fill(self, value: object) -> Scalar:
        """Accept exactly as many bytes, or a NumPy void scalar of this length."""
        scalar = as_scalar(value)
        if scalar is not None and scalar.dtype.kind in "VS":
            value = scalar.tobytes()
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"not bytes: {value!r}")
        data = bytes(value)
        if len(data) != self.length:
            raise ValueError(f"{self.length} bytes expected, got {len(data)}")
        return self._padded(data)

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept, for v3 ``r<N>``, a list of one integer (0 to 255) per byte; otherwise Base64 of the bytes."""
        if zarr_format < 3 or self._spelling == "raw_bytes":
            decoded = self._decode(value, zarr_format)
            if len(decoded) != self.length:
                raise fill_error(self.name, value, f"Base64 of exactly {self.length} bytes")
            return self._padded(decoded)
        data = byte_list(value)
        if data is None or len(data) != self.length:
            raise fill_error(f"r{8 * self.length}", value, f"a list of {self.length} integers from 0 to 255")
        return self._padded(data)

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return, for v3 ``r<N>``, a list of integers; otherwise Base64."""
        data = fill.tobytes()
        return list(data) if zarr_format == 3 and self._spelling == "r" else encode_base64(data)


def byte_list(value: JSON) -> bytes | None:
    """Return the bytes of a JSON list of integers from 0 to 255; ``None`` for anything else."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return None
    if any(type(item) is not int or not 0 <= item <= 255 for item in value):
        return None
    return bytes(value)  # type: ignore[arg-type]


class NullTerminatedBytes(_FixedBytes):
    """NumPy's ``S``: at most `length` bytes, NUL-padded; trailing NULs do not belong to the value."""

    name = "null_terminated_bytes"
    kind = "S"

    @classmethod
    @read_by_format
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:
        """Parse ``length_bytes``."""
        return cls(length=length_bytes_of(name, configuration))

    @named_by_format
    def to_json(self) -> JSON:
        """Return the object form."""
        return {"name": self.name, "configuration": {"length_bytes": self.length}}

    def cast_fill(self, value: object) -> Scalar:
        """Accept bytes, or ASCII text, of at most `length`."""
        scalar = as_scalar(value)
        if scalar is not None:
            value = scalar.item()
        data = value.encode("ascii") if isinstance(value, str) else value
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"not bytes: {value!r}")
        data = bytes(data).rstrip(b"\0")
        if len(data) > self.length:
            raise ValueError(f"at most {self.length} bytes expected, got {len(data)}")
        return self._padded(data)

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept Base64 of at most `length` bytes; in v2 also the ``0`` and ``""`` of old writers, with a warning."""
        data = self._decode(value, zarr_format)
        if len(data) > self.length:
            raise fill_error(self.name, value, f"Base64 of at most {self.length} bytes")
        return self._padded(data)

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return Base64: of all `length` bytes in v2, without trailing NULs in v3."""
        data = fill.tobytes()
        return encode_base64(data if zarr_format < 3 else data.rstrip(b"\0"))


class FixedLengthUTF32(Ordered):
    """NumPy's ``U``: at most `length` code points of 4 bytes, NUL-padded."""

    name = "fixed_length_utf32"
    length: int
    """Code points per element."""

    def __init__(self, *, length: int, endianness: Endianness | None = None) -> None:
        super().__init__(endianness=endianness)
        vars(self)["length"] = check_length(length, 4)

    def _key(self) -> tuple[object, ...]:
        return self.length, self.endianness

    def _arguments(self) -> Mapping[str, object]:
        return {"length": self.length, **super()._arguments()}

    def _reordered(self, endianness: Endianness) -> DataType:
        return type(self)(length=self.length, endianness=endianness)

    @property
    def code(self) -> str:  # type: ignore[override]
        """``U`` and the length."""
        return f"U{self.length}"

    @classmethod
    @read_by_format
    def from_json(cls, name: str, configuration: Mapping[str, JSON] | None) -> Self:
        """Parse ``length_bytes``, a multiple of 4."""
        return cls(length=length_bytes_of(name, configuration, 4))

    @named_by_format
    def to_json(self) -> JSON:
        """Return the object form."""
        return {"name": self.name, "configuration": {"length_bytes": 4 * self.length}}

    def default_fill(self) -> Scalar:
        """Return empty text."""
        return self._make("")

    def _make(self, text: str) -> Scalar:
        if len(check_text(text).rstrip("\0")) > self.length:
            raise ValueError(f"it has {len(text)} characters; at most {self.length} fit")
        scalar = np.array(text.rstrip("\0"), dtype=self.dtype)
        scalar.flags.writeable = False
        return scalar

    def cast_fill(self, value: object) -> Scalar:
        """Accept text of at most `length` characters."""
        return self._make(text_of(value))

    def parse_fill(self, value: JSON, zarr_format: ZarrFormat) -> Scalar:
        """Accept a JSON string; in v2 also 0, which zarr-python wrote for empty text."""
        if zarr_format < 3 and is_old_zero(value):
            return self.default_fill()
        try:
            if isinstance(value, str):
                return self._make(value)
        except ValueError as error:
            raise refused_fill(self.name, value, error) from error
        raise fill_error(self.name, value, "a JSON string")

    def dump_fill(self, fill: Scalar, zarr_format: ZarrFormat) -> JSON:
        """Return the text, without trailing NULs."""
        return str(fill.item())
