"""The codec of chunks that end where the array ends. v3 name ``tessarr.clipped``; no v2 id.

>>> ClippedCodec.from_json({"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}).to_json()["configuration"]
{'codecs': [{'name': 'bytes', 'configuration': {'endian': 'little'}}]}

Some formats store chunks at the edge without what is beyond the edge, and say nowhere in the chunk which shape it has.
Stores of such formats state it in front of the bytes: a header as that of ``n5_default`` (mode 0, the number of axes, the
length of each), and then the block, encoded by `codecs` for its own shape. Decoding fills the chunk; whole chunks are written.

Source: tessarr's own; used by `tessarr.stores.virtual.precomputed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tessarr.codecs.array_to_bytes.n5_default import DEFAULT, bound_to, fitted, header, read_header
from tessarr.codecs.base import ArrayToBytes, ChunkSpec, Codec
from tessarr.codecs.chain import split
from tessarr.codecs.parse import codecs_member
from tessarr.codecs.raw import flat_bytes
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.types import JSON, AnyArray, Buffer, JSONObject


@dataclass(frozen=True, slots=True)
class ClippedCodec(ArrayToBytes):
    """Store the shape of a block, which is at most that of its chunk, and the block encoded by `codecs`."""

    name = "tessarr.clipped"
    codecs: tuple[Codec, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "codecs", tuple(self.codecs))
        try:
            split(self.codecs)
        except CodecError as error:
            problem = Problem(("codecs",), "value", str(error))
            raise MetadataValidationError(f"invalid {self.name} codec", [problem], codec=self.name) from error

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(codecs_member(cls.name, configuration))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"codecs": [codec.to_json() for codec in self.codecs]}}

    def fit(self, spec: ChunkSpec) -> Self:
        """Fit every inner codec."""
        return type(self)(tuple(codec.fit(spec) for codec in self.codecs))

    def encoded_size(self, spec: ChunkSpec) -> None:
        if spec.shape and max(spec.shape) >= 1 << 32:
            raise CodecError("an axis is too long for the header of a chunk", codec=self.name, got=spec.shape)
        bound_to(self.codecs, spec.shape, spec.data_type)

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        body = bound_to(self.codecs, spec.shape, spec.data_type).encode(chunk)
        return header(DEFAULT, spec.shape) + flat_bytes(body).tobytes()

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        shape, body = read_header(self.name, data, DEFAULT, len(spec.shape))
        if any(length > most for length, most in zip(shape, spec.shape, strict=True)):
            raise CodecError("a block is larger than its chunk", codec=self.name, expected=spec.shape, got=shape)
        return fitted(bound_to(self.codecs, shape, spec.data_type).decode(body), spec)
