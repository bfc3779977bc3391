"""The codec of chunks that end where the array ends. v3 name ``tessarr.clipped``; no v2 id.

>>> ClippedCodec.from_json({"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}).to_json()["configuration"]
{'codecs': [{'name': 'bytes', 'configuration': {'endian': 'little'}}]}

Some formats store chunks at the edge without what is beyond the edge, and say nowhere in the chunk which shape it has.
Stores of such formats state it in front of the bytes: a header as that of ``n5_default`` (mode 0, the number of axes, the
length of each), and then the block, encoded by `codecs` for its own shape. Decoding fills the chunk; whole chunks are written.

Source: tessarr's own; used by `tessarr.stores.virtual.precomputed`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tessarr.codecs.array_to_bytes.block_codec import BlockCodec
from tessarr.codecs.base import ChunkSpec
from tessarr.errors import CodecError
from tessarr.types import Shape


@dataclass(frozen=True, slots=True)
class ClippedCodec(BlockCodec):
    """Store the shape of a block, which is at most that of its chunk, and the block encoded by `codecs`."""

    name = "tessarr.clipped"

    def _check_block(self, shape: Shape, spec: ChunkSpec, nbytes: int) -> None:
        if any(length > most for length, most in zip(shape, spec.shape, strict=True)):
            raise CodecError("a block is larger than its chunk", codec=self.name, expected=spec.shape, got=shape)
