"""N5's blocks in their modes for elements of varying size: ``n5_varlen`` (mode 1), ``tessarr.n5_objects`` (mode 2).

Source: zarr-extensions pull request 54 (proposed); N5 4.0 and its Java source, which writes no shape in mode 2. No v2 ids.

>>> N5VarlenCodec.from_json({"codecs": [{"name": "vlen-utf8"}]}).to_json()["configuration"]
{'codecs': [{'name': 'vlen-utf8'}]}

Like ``n5_default``, with mode 1 and one more number after the shape (uint32, big-endian): the size in bytes of the output
of the array → bytes codec, before compression, which the proposal calls ``numElements`` since May 2026 and Java writes.
Earlier texts have the size of the compressed bytes; both are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tessarr.codecs.array_to_bytes.block_codec import (
    OBJECT,
    VARLENGTH,
    BlockCodec,
    bound_to,
    fitted,
    header,
    read_header,
)
from tessarr.codecs.base import BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.chain import split
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.errors import CodecError
from tessarr.types import AnyArray, Buffer


@dataclass(frozen=True, slots=True)
class N5VarlenCodec(BlockCodec):
    """Store a header, and elements encoded by `codecs`: one array → bytes codec, then compressors."""

    name = "n5_varlen"

    def _problem(self) -> str | None:
        problem = BlockCodec._problem(self)
        return problem or ("must begin with an array to bytes codec" if split(self.codecs)[0] else None)

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
        self._check_block(shape, spec, len(body))
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
        return fitted(self.name, np.asarray(block), spec)


@dataclass(frozen=True, slots=True)
class N5ObjectsCodec(BlockCodec):
    """Store one element, the bytes of an object, behind their number; compressed by `codecs`, at most one compressor.

    >>> codec, spec = N5ObjectsCodec(()), ChunkSpec((1,), __import__("tessarr").dtypes.parse.from_v3("bytes"), np.array(b""))
    >>> codec.encode(np.array([b"ab"], object), spec).hex()
    '0002000000026162'
    """

    name = "tessarr.n5_objects"
    codecs: tuple[Codec, ...] = ()

    def _problem(self) -> str | None:
        if len(self.codecs) > 1 or not all(isinstance(codec, BytesToBytes) for codec in self.codecs):
            return f"must be at most one compressor; got {list(self.codecs)}"
        return None

    def fit(self, spec: ChunkSpec) -> Self:
        """Return the codec: objects have no size to which a compressor could be fitted."""
        return self

    def encoded_size(self, spec: ChunkSpec) -> None:
        if spec.data_type.name != "bytes" or any(length != 1 for length in spec.shape):
            raise CodecError(
                "N5 holds one object in such a block",
                codec=self.name,
                expected="chunks of one element of the type bytes",
                got=f"shape {spec.shape} of {spec.data_type.name}",
            )

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        value = bytes(chunk.reshape(-1)[0])
        if len(value) >= 1 << 31:
            raise CodecError("an N5 block holds less than 2 GiB", codec=self.name, got=f"{len(value)} bytes")
        data: Buffer = value
        for codec in self.codecs:
            data = _compressor(codec).encode(data)
        return OBJECT.to_bytes(2, "big") + len(value).to_bytes(4, "big") + flat_bytes(data).tobytes()

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        source = flat_bytes(data)
        mode, count = int.from_bytes(source[:2].tobytes(), "big"), int.from_bytes(source[2:6].tobytes(), "big")
        if len(source) < 6 or mode != OBJECT:
            what = "an N5 block is not one of an object"
            raise CodecError(what, codec=self.name, expected=f"mode {OBJECT}", got=f"mode {mode}, {len(source)} bytes")
        decoded: Buffer = source[6:]
        for codec in self.codecs:
            decoded = _compressor(codec).decode(decoded, None)
        value = flat_bytes(decoded).tobytes()
        if len(value) != count:
            raise CodecError(
                "an N5 block does not have the size it states",
                codec=self.name,
                expected=f"{count} bytes",
                got=len(value),
            )
        found = np.empty(1, object)
        found[0] = value
        return found.reshape(spec.shape)


def _compressor(codec: Codec) -> BytesToBytes:
    assert isinstance(codec, BytesToBytes)  # `_problem` requires it
    return codec
