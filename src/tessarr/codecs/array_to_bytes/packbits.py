"""The ``packbits`` codec: a fixed number of bits per element, without gaps.

Source: zarr-extensions, "packbits". v3 name ``packbits``.

>>> PackBitsCodec.from_json({"first_bit": 0, "last_bit": 11}).to_json()["configuration"]
{'padding_encoding': 'none', 'first_bit': 0, 'last_bit': 11}

``first_bit`` and ``last_bit`` count from the least significant bit of an element (of each part of a complex one) and
say which bits are kept; ``padding_encoding`` says whether the number of unused bits at the end is stored in a separate
byte. The registered text does not say where in a byte the first element goes: it is the lowest bit, as in zarrs.
numcodecs uses the other order (v2 id ``packbits``, v3 name ``numcodecs.packbits``; `tessarr.codecs.numcodecs`),
although the text calls ``first_byte`` compatible with it. Signs are extended over the whole element (zarrs, in 2026,
stops at the end of the byte). The registered schema has other member names, which no implementation writes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.members import check_members, choice, integer, optional, read_members
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.errors import CodecError
from tessarr.types import JSON, AnyArray, Buffer, JSONObject

_CHECKS = {
    "padding_encoding": choice("none", "first_byte", "last_byte"),
    "first_bit": optional(integer(0)),
    "last_bit": optional(integer(0)),
}
_NARROW = {
    "bool": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6,
}  # fmt: skip
"""Bits of types that do not fill their byte."""


class _Layout(NamedTuple):
    parts: int
    """Components per element: 2 for complex types."""
    width: int
    """Bytes per component in memory."""
    first: int
    last: int
    signed: bool
    nbits: int
    """Bits of a whole component."""

    @property
    def bits_used(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class PackBitsCodec(ArrayToBytes):
    """Store the bits of elements without gaps."""

    name = "packbits"
    padding_encoding: Literal["none", "first_byte", "last_byte"] = "none"
    """Position of the byte that holds the number of unused bits at the end."""
    first_bit: int | None = None
    """Lowest bit that is kept; ``None``: 0."""
    last_bit: int | None = None
    """Highest bit that is kept; ``None``: the highest of the type."""

    def __post_init__(self) -> None:
        check_members(self.name, {name: getattr(self, name) for name in _CHECKS}, _CHECKS)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {name: getattr(self, name) for name in _CHECKS}}

    def _layout(self, spec: ChunkSpec) -> _Layout:
        name, itemsize = spec.data_type.name, spec.data_type.itemsize
        parts = 2 if name.startswith("complex") else 1
        narrow = _NARROW.get(name.removeprefix("complex_"))
        if itemsize is None or (narrow is None and not name.removeprefix("complex_").startswith(_NUMBERS)):
            raise CodecError(f"packbits cannot store {name}", codec=self.name, expected="booleans or numbers", got=name)
        nbits = narrow or 8 * itemsize // parts
        first = self.first_bit or 0
        last = nbits - 1 if self.last_bit is None else self.last_bit
        if not first <= last < nbits:
            raise CodecError(
                "packbits keeps bits that the elements do not have",
                codec=self.name,
                expected=f"0 <= first_bit <= last_bit < {nbits} for {name}",
                got=f"first_bit {first}, last_bit {last}",
            )
        return _Layout(parts, itemsize // parts, first, last, name.startswith("int"), nbits)

    def encoded_size(self, spec: ChunkSpec) -> int:
        layout = self._layout(spec)
        bits = prod(spec.shape) * layout.parts * layout.bits_used
        return -(-bits // 8) + (self.padding_encoding != "none")

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        layout = self._layout(spec)
        little = _little(np.ascontiguousarray(chunk, spec.dtype), layout)
        if layout.nbits == 1:
            bits = little.reshape(-1)
        else:
            bits = np.unpackbits(little, axis=1, bitorder="little")[:, layout.first : layout.last + 1].reshape(-1)
        packed = np.packbits(bits, bitorder="little")
        padding = np.array([-len(bits) % 8], np.uint8)
        if self.padding_encoding == "none":
            return packed
        return np.concatenate([padding, packed] if self.padding_encoding == "first_byte" else [packed, padding])

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        layout, packed, count = self._layout(spec), flat_bytes(data), prod(spec.shape)
        if len(packed) != self.encoded_size(spec):
            raise CodecError(
                "packbits data has the wrong size",
                codec=self.name,
                expected=f"{self.encoded_size(spec)} bytes for shape {spec.shape}",
                got=f"{len(packed)} bytes",
            )
        nbits = count * layout.parts * layout.bits_used
        if self.padding_encoding != "none":
            front = self.padding_encoding == "first_byte"
            padding, packed = (packed[0], packed[1:]) if front else (packed[-1], packed[:-1])
            if padding != -nbits % 8:
                raise corrupt(self.name, f"it states {padding} unused bits, there are {-nbits % 8}")
        bits = np.unpackbits(packed, count=nbits, bitorder="little")
        if layout.nbits == 1:
            return bits.view(bool).reshape(spec.shape)
        whole = np.zeros((count * layout.parts, 8 * layout.width), np.uint8)
        bits_used = bits.reshape(-1, layout.bits_used)
        whole[:, layout.first : layout.last + 1] = bits_used
        if layout.signed:
            whole[:, layout.last + 1 : layout.nbits] = bits_used[:, -1:]
        little = np.packbits(whole, axis=1, bitorder="little")
        if spec.data_type.has_byteorder:
            dtype = spec.data_type.with_byteorder("<").dtype
        else:
            dtype = spec.dtype
        return little.reshape(-1).view(dtype).reshape(spec.shape)


_NUMBERS = ("int", "uint", "float", "bfloat", "complex64", "complex128")


def _little(chunk: AnyArray, layout: _Layout) -> npt.NDArray[np.uint8]:
    """Return the bytes of each component, least significant first, as rows."""
    rows = chunk.reshape(-1).view(np.uint8).reshape(-1, layout.width)
    part = chunk.dtype
    while part.fields:
        part = next(iter(part.fields.values()))[0]
    big = part.byteorder == ">" or (part.byteorder == "=" and sys.byteorder == "big")
    return rows[:, ::-1] if big else rows
