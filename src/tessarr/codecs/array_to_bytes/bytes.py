"""The ``bytes`` codec: elements in C order, in a stated byte order.

Source: Zarr v3.1, "Bytes codec". v3 name ``bytes``; the name ``endian`` (before 2024) is read and never written.

>>> BytesCodec.from_json({"endian": "little"}).to_json()
{'name': 'bytes', 'configuration': {'endian': 'little'}}

``endian`` is left out for types whose elements are single bytes. ``BytesCodec(None)`` for a wider type stores elements in
the byte order that the data type declares, as Zarr v1 and v2 do, where the order belongs to the dtype. A v3 document
without ``endian`` is an error then, except for structured types, which zarr-python wrote so (little-endian).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Self

import numpy as np

from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.members import plain_value
from tessarr.dtypes.element import converted
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.settings import is_strict
from tessarr.types import JSON, AnyArray, AnyDType, Buffer, JSONObject

_BUFFER_KINDS = "biufcSU"
"""Kinds of NumPy dtypes that the buffer protocol supports everywhere; arrays of other kinds are passed as bytes."""
_USER_DEFINED = 256
"""First type number of dtypes from other packages: the kind of ml_dtypes' float8_e5m2 is "f" too."""
_ORDERS = {"little": "<", "big": ">"}


class Endian(StrEnum):
    """Values of ``endian`` of `BytesCodec`, as zarr-python enumerates them. Each member is the string in documents."""

    big = "big"
    little = "little"


@dataclass(frozen=True, slots=True)
class BytesCodec(ArrayToBytes):
    """Store raw elements in C order."""

    name = "bytes"
    endian: Endian | Literal["little", "big"] | None = Endian.little
    """Byte order of multi-byte elements, an `Endian`; ``None``: as the data type declares."""

    def __post_init__(self) -> None:
        if self.endian is not None and type(self.endian) is not Endian:
            endian = plain_value(self.endian, "BytesCodec", "endian")
            if endian not in ("little", "big"):
                raise ValueError(f"endian must be one of 'little' and 'big', got {endian!r}")
            object.__setattr__(self, "endian", Endian(endian))

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems = [
            Problem((name,), "unknown", "unknown member of the bytes codec")
            for name in configuration
            if name != "endian"
        ]
        endian = configuration.get("endian")
        if endian is not None and endian not in ("little", "big"):
            problems.append(Problem(("endian",), "value", f"must be 'little' or 'big', got {endian!r}"))
        if problems:
            raise MetadataValidationError("invalid bytes codec", problems)
        return cls(endian)  # type: ignore[arg-type]

    def to_json(self) -> JSONObject:
        if self.endian is None:
            return {"name": "bytes"}
        return {"name": "bytes", "configuration": {"endian": str(self.endian)}}

    def fit(self, spec: ChunkSpec) -> Self:
        """Drop the byte order where the type has no byte order."""
        return self if spec.data_type.has_byteorder else type(self)(None)

    def stored_dtype(self, spec: ChunkSpec) -> AnyDType:
        """Return the dtype of stored elements."""
        if self.endian == sys.byteorder and spec.dtype.isnative:
            return spec.dtype
        if self.endian is None or not spec.data_type.has_byteorder:
            return spec.dtype
        return spec.data_type.with_byteorder(_ORDERS[self.endian]).dtype

    def encoded_size(self, spec: ChunkSpec) -> int:
        if spec.nbytes is None:
            raise CodecError(
                f"the bytes codec cannot store {spec.data_type.name}, whose elements differ in size",
                codec="bytes",
                hint="Use vlen-utf8 for string and vlen-bytes for bytes",
            )
        return spec.nbytes

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        """Return a C-contiguous array of the stored dtype (`chunk` itself if it is one), or its bytes."""
        dtype = self.stored_dtype(spec)
        given = converted(chunk, dtype) if dtype.kind in "mM" else chunk
        stored = np.ascontiguousarray(given, dtype).reshape(chunk.shape)
        plain = stored.dtype.kind in _BUFFER_KINDS and stored.dtype.num < _USER_DEFINED
        return stored if plain else stored.reshape(-1).view(np.uint8)

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        """View `data` as elements of the stored dtype."""
        view = memoryview(data)
        if view.nbytes != spec.nbytes:
            raise CodecError(
                "a chunk has the wrong size after decompression",
                codec="bytes",
                expected=f"{spec.nbytes} bytes for shape {spec.shape} of {spec.data_type.name}",
                got=f"{view.nbytes} bytes",
                hint="The stored value is truncated or belongs to another array; run `tessarr check --data`",
            )
        if spec.nbytes == 0:
            return np.empty(spec.shape, spec.dtype)
        if spec.dtype.kind == "b":  # a byte other than 0 and 1 is true unless strict (V3-BYTES-05)
            stored = np.frombuffer(view, np.uint8)
            if is_strict() and stored.max() > 1:
                raise CodecError("a bool is stored as a byte other than 0 and 1", codec="bytes", got=int(stored.max()))
            return np.not_equal(stored, 0).reshape(spec.shape)
        return np.frombuffer(view, self.stored_dtype(spec)).reshape(spec.shape)
