r"""The ``optional`` codec: which elements are present, and the values of those, each by codecs of its own.

Source: zarr-extensions pull request 33 (proposed). v3 name ``optional``; zarrs writes ``zarrs.optional``; no v2 id.

>>> given = {"mask_codecs": [{"name": "packbits"}], "data_codecs": [{"name": "bytes"}]}
>>> codec = OptionalCodec.from_json(given)
>>> from tessarr.dtypes.parse import from_v3
>>> data_type = from_v3({"name": "optional", "configuration": {"name": "uint8"}})
>>> chunk = np.array([(5, True), (0, False), (7, True)], data_type.dtype)
>>> codec.encode(chunk, ChunkSpec((3,), data_type, data_type.default_fill())).hex(" ", -8)
'0100000000000000 0200000000000000 050507'

A chunk is the size of the mask and of the data (64 bits each, little-endian), the encoded mask (a bool per element, true where
it is present), and the encoded data: the present elements in C order, as an array of one axis. Without present elements
there is no data. Sizes are checked before anything is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Self

import numpy as np

from tessarr.codecs.base import ArrayToBytes, ChunkSpec, Codec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.fit import fit_chain
from tessarr.codecs.parse import parse_codecs
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.dtypes.base import DataType
from tessarr.dtypes.numeric import Bool
from tessarr.dtypes.optional import OptionalValue, joined, split
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.types import JSON, AnyArray, Buffer, JSONObject

_MEMBERS = ("mask_codecs", "data_codecs")
_SIZES = 16
"""Bytes of the two sizes."""


@dataclass(frozen=True, slots=True)
class OptionalCodec(ArrayToBytes):
    """Store a mask, and the elements that are present."""

    name = "optional"
    mask_codecs: tuple[Codec, ...]
    """Codecs of the mask, in encoding order."""
    data_codecs: tuple[Codec, ...]
    """Codecs of the present elements, in encoding order."""
    spelled: str = field(default="optional", compare=False)
    """The name in documents: ``"optional"`` or ``"zarrs.optional"``."""

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems = [
            Problem((name,), "unknown", f"unknown member of the {cls.name} codec")
            for name in configuration
            if name not in _MEMBERS
        ]
        problems += [Problem((name,), "missing", "is required") for name in _MEMBERS if name not in configuration]
        chains = [parse_codecs(configuration.get(name, []), (name,), problems) for name in _MEMBERS]
        for name, (_, ignored) in zip(_MEMBERS, chains, strict=True):
            if ignored:  # every stored chunk needs it
                problems.append(Problem((name,), "unsupported", f"unknown codecs {ignored} cannot be left out here"))
        if problems:
            raise MetadataValidationError(f"invalid {cls.name} codec", problems, codec=cls.name)
        (mask_codecs, _), (data_codecs, _) = chains
        return cls(mask_codecs, data_codecs)

    def to_json(self) -> JSONObject:
        chains = (self.mask_codecs, self.data_codecs)
        members = {name: [one.to_json() for one in codecs] for name, codecs in zip(_MEMBERS, chains, strict=True)}
        return {"name": self.spelled, "configuration": members}

    def fit(self, spec: ChunkSpec) -> Self:
        """Fit the inner codecs, those of the data to a chunk of which no element is missing."""
        return replace(
            self,
            mask_codecs=fit_chain(self.mask_codecs, _mask_spec(spec)),
            data_codecs=fit_chain(self.data_codecs, self._data_spec(spec, prod(spec.shape))),
        )

    def _data_spec(self, spec: ChunkSpec, count: int) -> ChunkSpec:
        if not isinstance(spec.data_type, OptionalValue):
            raise CodecError(
                f"the codec {self.name} cannot store {spec.data_type.name}, whose elements are never missing",
                codec=self.name,
                expected="the data type optional",
                got=spec.data_type.name,
            )
        inner = spec.data_type.data_type
        return ChunkSpec((count,), inner, inner.default_fill())

    def encoded_size(self, spec: ChunkSpec) -> None:
        """Bind both chains once, to find codecs that cannot apply."""
        BoundChain(self.mask_codecs, _mask_spec(spec))
        BoundChain(self.data_codecs, self._data_spec(spec, max(1, prod(spec.shape))))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        present, values = split(chunk)
        mask = flat_bytes(BoundChain(self.mask_codecs, _mask_spec(spec)).encode(np.ascontiguousarray(present)))
        data_spec = self._data_spec(spec, len(values))
        data = b""
        if len(values):
            given = values.astype(data_spec.dtype, copy=False)
            data = flat_bytes(BoundChain(self.data_codecs, data_spec).encode(given)).tobytes()
        sizes = (len(mask).to_bytes(8, "little"), len(data).to_bytes(8, "little"))
        return b"".join((*sizes, mask.tobytes(), data))

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        source = flat_bytes(data)
        sizes = [int.from_bytes(source[at : at + 8].tobytes(), "little") for at in (0, 8)]
        if len(source) < _SIZES or len(source) != _SIZES + sum(sizes):
            raise corrupt(self.name, f"{len(source)} bytes, of which the header states 16 and {sizes}")
        mask, rest = source[_SIZES : _SIZES + sizes[0]], source[_SIZES + sizes[0] :]
        present = np.asarray(BoundChain(self.mask_codecs, _mask_spec(spec)).decode(mask), np.bool_)
        data_spec = self._data_spec(spec, int(np.count_nonzero(present)))
        values = np.empty(0, data_spec.dtype)
        if data_spec.shape != (0,):
            values = BoundChain(self.data_codecs, data_spec).decode(rest)
        return joined(present, values, spec.dtype)


class ZarrsOptionalCodec(OptionalCodec):
    """The same codec under the name that zarrs writes."""

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return replace(super().from_json(configuration), spelled="zarrs.optional")


def default_optional(data_type: DataType, serializer: Callable[[DataType], Codec]) -> OptionalCodec:
    """Make the codec for an optional type under the name that goes with that of the type; the mask is packed to bits.

    `serializer` makes the codec of the present elements.
    """
    from tessarr.codecs.array_to_bytes.packbits import PackBitsCodec

    assert isinstance(data_type, OptionalValue)
    return OptionalCodec((PackBitsCodec(),), (serializer(data_type.data_type),), data_type.name)


def _mask_spec(spec: ChunkSpec) -> ChunkSpec:
    element = Bool()
    return ChunkSpec(spec.shape, element, element.default_fill())
