"""The ``n5_varlen`` codec: N5's blocks in their mode for elements of varying size.

Source: zarr-extensions pull request 54 (proposed); N5 4.0. v3 name ``n5_varlen``; no v2 id.

>>> N5VarlenCodec.from_json({"codecs": [{"name": "vlen-utf8"}]}).to_json()["configuration"]
{'codecs': [{'name': 'vlen-utf8'}]}

Like ``n5_default``, with mode 1 and one more number after the shape (uint32, big-endian): the size in bytes of the output
of the array → bytes codec, before compression, which the proposal calls ``numElements`` since May 2026 and Java writes.
Earlier texts have the size of the compressed bytes; both are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tessarr.codecs.array_to_bytes.n5_default import (
    VARLENGTH,
    bound_to,
    check_block,
    fitted,
    header,
    read_header,
)
from tessarr.codecs.base import ArrayToBytes, ChunkSpec, Codec
from tessarr.codecs.chain import split
from tessarr.codecs.parse import codecs_member
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.types import JSON, AnyArray, Buffer, JSONObject


@dataclass(frozen=True, slots=True)
class N5VarlenCodec(ArrayToBytes):
    """Store a header, and elements encoded by `codecs`: one array → bytes codec, then compressors."""

    name = "n5_varlen"
    codecs: tuple[Codec, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "codecs", tuple(self.codecs))
        try:
            before, _, _ = split(self.codecs)
        except CodecError as error:
            problem = Problem(("codecs",), "value", str(error))
            raise MetadataValidationError("invalid n5_varlen codec", [problem], codec=self.name) from error
        if before:
            problem = Problem(("codecs",), "value", "must begin with an array to bytes codec")
            raise MetadataValidationError("invalid n5_varlen codec", [problem], codec=self.name)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(codecs_member(cls.name, configuration))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"codecs": [codec.to_json() for codec in self.codecs]}}

    def fit(self, spec: ChunkSpec) -> Self:
        """Fit every inner codec."""
        return type(self)(tuple(codec.fit(spec) for codec in self.codecs))

    def encoded_size(self, spec: ChunkSpec) -> None:
        bound_to(self.codecs, spec.shape, spec.data_type)
        if spec.shape and max(spec.shape) >= 1 << 32:
            raise CodecError("an axis is too long for an N5 block", codec=self.name, got=spec.shape)

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        chain = bound_to(self.codecs, spec.shape, spec.data_type)
        data = chain.middle.encode(chunk, spec)
        count = len(flat_bytes(data))
        if count >= 1 << 32:
            raise CodecError("an N5 block holds less than 4 GiB", codec=self.name, got=f"{count} bytes")
        for step in chain.after:
            data = step.encode(data)
        return header(VARLENGTH, spec.shape) + count.to_bytes(4, "big") + flat_bytes(data).tobytes()

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        shape, rest = read_header(self.name, data, VARLENGTH, len(spec.shape))
        if len(rest) < 4:
            raise corrupt(self.name, f"{len(rest)} bytes are too few for the number of elements")
        count, body = int.from_bytes(rest[:4].tobytes(), "big"), rest[4:]
        check_block(self.name, shape, spec, len(body))
        chain = bound_to(self.codecs, shape, spec.data_type)
        decoded: Buffer = body
        for step in reversed(chain.after):
            decoded = step.decode(decoded, None)
        if count not in (len(flat_bytes(decoded)), len(body)):
            raise CodecError(
                "an N5 block does not have the size it states",
                codec=self.name,
                expected=f"{len(flat_bytes(decoded))} bytes",
                got=f"{count} bytes",
            )
        block = chain.middle.decode(decoded, spec.with_(shape=shape))
        return fitted(np.asarray(block), spec)
