"""What the codecs of blocks share: a header with the shape of the block, and the codecs of what follows.

A block is what one stored value holds. It may have another shape than its chunk: less at the edge of the array, where writers
leave out what is beyond it.

Source: N5 4.0, "file-system specification".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.base import ArrayToBytes, ChunkSpec, Codec
from tessarr.codecs.chain import BoundChain, split
from tessarr.codecs.parse import codecs_member
from tessarr.codecs.raw import MAX_RATIO, corrupt, flat_bytes
from tessarr.dtypes.base import DataType
from tessarr.errors import CodecError, MetadataValidationError, Problem
from tessarr.types import JSON, AnyArray, Buffer, JSONObject, Shape

DEFAULT, VARLENGTH, OBJECT = 0, 1, 2
"""Modes of a block."""
_MOST = 16
"""Largest ratio of a block's elements to those of its chunk."""


def header(mode: int, shape: Shape) -> bytes:
    """Build the header of a block of `shape`.

    >>> header(0, (3, 2)).hex()
    '000000020000000300000002'
    """
    return struct.pack(f">HH{len(shape)}I", mode, len(shape), *shape)


def read_header(codec: str, data: Buffer, mode: int, ndim: int) -> tuple[Shape, npt.NDArray[np.uint8]]:
    """Parse the header of a block of `mode` with `ndim` axes; return its shape and the remaining bytes. Raises
    `CodecError`.
    """
    source = flat_bytes(data)
    size = 4 + 4 * ndim
    if len(source) < 4:
        raise corrupt(codec, f"{len(source)} bytes are shorter than the header")
    found, axes = struct.unpack(">HH", source[:4].tobytes())
    if found != mode:
        raise CodecError(f"an N5 block has a mode that {codec} does not read", codec=codec, expected=mode, got=found)
    if axes != ndim:
        raise CodecError("an N5 block has the wrong number of axes", codec=codec, expected=ndim, got=axes)
    if len(source) < size:
        raise corrupt(codec, f"{len(source)} bytes are shorter than the header")
    return struct.unpack(f">{ndim}I", source[4:size].tobytes()), source[size:]


def fitted(codec: str, block: AnyArray, spec: ChunkSpec) -> AnyArray:
    """Pad or crop `block` to the shape of `spec`. Raises `CodecError` where memory for such a chunk cannot be had."""
    if block.shape == spec.shape:
        return block
    try:
        chunk = np.zeros(spec.shape, spec.dtype)  # whose pages take no memory before they are written
        fill = np.asarray(spec.fill, spec.dtype)
        if spec.dtype.hasobject or fill.tobytes().strip(b"\0"):
            chunk[...] = fill
    except MemoryError as error:
        raise CodecError("a chunk is too large for the memory", codec=codec, got=f"shape {spec.shape}") from error
    common = tuple(slice(min(n, m)) for n, m in zip(block.shape, spec.shape, strict=True))
    chunk[common] = block[common]
    return chunk


def bound_to(codecs: tuple[Codec, ...], shape: Shape, data_type: DataType) -> BoundChain:
    """Bind the codecs to blocks of `shape`. Raises `CodecError` when they cannot encode such blocks."""
    return BoundChain(codecs, ChunkSpec(shape, data_type, data_type.default_fill()))


@dataclass(frozen=True, slots=True)
class BlockCodec(ArrayToBytes):
    """Store the shape of a block in its header, and the block encoded by `codecs`. Base of the codecs of blocks."""

    codecs: tuple[Codec, ...]
    """Codecs of what follows the header, in encoding order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "codecs", tuple(self.codecs))
        problem = self._problem()
        if problem is not None:
            problems = [Problem(("codecs",), "value", problem)]
            raise MetadataValidationError(f"invalid {self.name} codec", problems, codec=self.name)

    def _problem(self) -> str | None:
        """Return what is wrong with `codecs`; ``None``: nothing."""
        try:
            split(self.codecs)
        except CodecError as error:
            return str(error)
        return None

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(codecs_member(cls.name, configuration))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"codecs": [codec.to_json() for codec in self.codecs]}}

    def fit(self, spec: ChunkSpec) -> Self:
        """Fit every inner codec."""
        return type(self)(tuple(codec.fit(spec) for codec in self.codecs))

    def encoded_size(self, spec: ChunkSpec) -> None:
        """See `ArrayToBytes.encoded_size`: a block may have another shape than its chunk, so that no size is known."""
        if spec.shape and max(spec.shape) >= 1 << 32:
            raise CodecError("an axis is too long for the header of a block", codec=self.name, got=spec.shape)
        bound_to(self.codecs, spec.shape, spec.data_type)

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        body = bound_to(self.codecs, spec.shape, spec.data_type).encode(chunk)
        return header(DEFAULT, spec.shape) + flat_bytes(body).tobytes()

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        shape, body = read_header(self.name, data, DEFAULT, len(spec.shape))
        self._check_block(shape, spec, len(body))
        return fitted(self.name, bound_to(self.codecs, shape, spec.data_type).decode(body), spec)

    def _check_block(self, shape: Shape, spec: ChunkSpec, nbytes: int) -> None:
        """Refuse a block that is much larger than its chunk, or too large for `nbytes`. Raises `CodecError`."""
        count, chunk = prod(shape), max(1, prod(spec.shape))
        itemsize = spec.data_type.itemsize or 1
        if count > _MOST * chunk or (shape != spec.shape and count * itemsize > MAX_RATIO * max(nbytes, 1)):
            raise CodecError(
                "an N5 block states an impossible size",
                codec=self.name,
                expected=f"about the shape {spec.shape} of the chunk",
                got=f"shape {shape} in {nbytes} bytes",
            )
