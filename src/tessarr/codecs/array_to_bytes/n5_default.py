"""The ``n5_default`` codec: N5's blocks in their default mode, a header with the shape and compressed elements.

Source: zarr-extensions, "n5_default"; N5 4.0, "file-system specification". v3 name ``n5_default``; no v2 id.

>>> codec = N5DefaultCodec.from_json({"codecs": [
...     {"name": "transpose", "configuration": {"order": [1, 0]}},
...     {"name": "bytes", "configuration": {"endian": "big"}},
...     {"name": "gzip", "configuration": {"level": 5}}]})
>>> [inner.name for inner in codec.codecs]
['transpose', 'bytes', 'gzip']

The header is big-endian: the mode (uint16, 0), the number of axes (uint16), the length of each (uint32), axes in the order
of the array. Elements are integers of 8 to 64 bits, float32 or float64, the first axis fastest. Blocks at the edge may be
padded (TensorStore, zarr-python) or truncated (Java), also within one array: they are filled, or cropped, to the chunk, and
written padded. A header of a block with more than 16 times the elements of the chunk is refused before memory is allocated.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.array_to_array.transpose import TransposeCodec
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.chain import BoundChain
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


def fitted(block: AnyArray, spec: ChunkSpec) -> AnyArray:
    """Pad or crop `block` to the shape of `spec`."""
    if block.shape == spec.shape:
        return block
    chunk = np.full(spec.shape, spec.fill, spec.dtype)
    common = tuple(slice(min(n, m)) for n, m in zip(block.shape, spec.shape, strict=True))
    chunk[common] = block[common]
    return chunk


def check_block(codec: str, shape: Shape, spec: ChunkSpec, nbytes: int) -> None:
    """Refuse a block that is much larger than its chunk, or too large for `nbytes`. Raises `CodecError`."""
    count, chunk = prod(shape), max(1, prod(spec.shape))
    itemsize = spec.data_type.itemsize or 1
    if count > _MOST * chunk or (shape != spec.shape and count * itemsize > MAX_RATIO * max(nbytes, 1)):
        raise CodecError(
            "an N5 block states an impossible size",
            codec=codec,
            expected=f"about the shape {spec.shape} of the chunk",
            got=f"shape {shape} in {nbytes} bytes",
        )


def bound_to(codecs: tuple[Codec, ...], shape: Shape, data_type: DataType) -> BoundChain:
    """Bind the codecs to blocks of `shape`. Raises `CodecError` when they cannot encode such blocks."""
    return BoundChain(codecs, ChunkSpec(shape, data_type, data_type.default_fill()))


@dataclass(frozen=True, slots=True)
class N5DefaultCodec(ArrayToBytes):
    """Store a header, and elements encoded by `codecs`."""

    name = "n5_default"
    codecs: tuple[Codec, ...]
    """A transpose that reverses the axes, big-endian bytes, and at most one compressor."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "codecs", tuple(self.codecs))
        problems = _problems(self.codecs)
        if problems:
            raise MetadataValidationError("invalid n5_default codec", problems, codec=self.name)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(codecs_member(cls.name, configuration))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"codecs": [codec.to_json() for codec in self.codecs]}}

    def fit(self, spec: ChunkSpec) -> Self:
        """Fit the compressor to the elements."""
        return type(self)(tuple(codec.fit(spec) for codec in self.codecs))

    @property
    def compressor(self) -> BytesToBytes | None:
        """The compressor, or ``None``."""
        last = self.codecs[-1]
        return last if isinstance(last, BytesToBytes) else None

    def encoded_size(self, spec: ChunkSpec) -> None:
        transpose, raw = self.codecs[:2]
        assert isinstance(transpose, TransposeCodec)  # checked in __post_init__
        assert isinstance(raw, BytesCodec)
        ndim = len(spec.shape)
        known = spec.dtype.kind in "iuf" and spec.dtype.isbuiltin != 2 and spec.dtype.itemsize <= 8
        if not known or spec.dtype == np.float16 or ndim == 0 or max(spec.shape) >= 1 << 32:
            raise CodecError(
                "N5 blocks cannot hold such chunks",
                codec=self.name,
                expected="one or more axes of integers, float32 or float64",
                got=f"shape {spec.shape} of {spec.data_type.name}",
            )
        if transpose.permutation(ndim) != tuple(reversed(range(ndim))):
            raise CodecError(
                "n5_default needs a transpose that reverses the axes",
                codec=self.name,
                expected=list(reversed(range(ndim))),
                got=list(transpose.permutation(ndim)),
            )
        if spec.dtype.itemsize > 1 and raw.endian != "big":
            raise CodecError("N5 blocks are big-endian", codec=self.name, expected="endian big", got=raw.endian)
        bound_to(self.codecs, spec.shape, spec.data_type)
        # A block may differ in shape from its chunk: even raw ones have no fixed size.

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        body = bound_to(self.codecs, spec.shape, spec.data_type).encode(chunk)
        return header(DEFAULT, spec.shape) + flat_bytes(body).tobytes()

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        shape, body = read_header(self.name, data, DEFAULT, len(spec.shape))
        check_block(self.name, shape, spec, len(body))
        return fitted(bound_to(self.codecs, shape, spec.data_type).decode(body), spec)


def _problems(codecs: Sequence[Codec]) -> list[Problem]:
    kinds: tuple[type[Codec], ...] = (TransposeCodec, BytesCodec, BytesToBytes)
    fine = 2 <= len(codecs) <= 3 and all(map(isinstance, codecs, kinds))
    message = "must be transpose, bytes, and at most one compressor"
    return [] if fine else [Problem(("codecs",), "value", f"{message}; got {[codec.name for codec in codecs]}")]
