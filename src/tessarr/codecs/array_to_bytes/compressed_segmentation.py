"""Neuroglancer's encoding of labels: per block of elements, a table of its labels. v3 name ``tessarr.compressed_segmentation``.

>>> CompressedSegmentationCodec((8, 8, 8)).to_json()
{'name': 'tessarr.compressed_segmentation', 'configuration': {'block_size': [8, 8, 8]}}

A chunk has the axes …, z, y, x, of uint32 or uint64. All numbers are little-endian words of 32 bits, offsets count words. First
the offset of each channel (what is before z, in C order); offsets within a channel count from its start. A channel begins with
two words for each block, x fastest: the offset of its table (24 bits) and the bits of an index (8 bits: 0, 1, 2, 4, 8, 16 or
32), then the offset of its indices. The indices of a block, padded to its full size, are packed from the lowest bit, x fastest.
Blocks may share a table.

Source: Neuroglancer, "Compressed Segmentation Format" and "Precomputed Volume Format". No v2 id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np
import numpy.typing as npt

from tessarr.codecs.base import ArrayToBytes, ChunkSpec
from tessarr.codecs.members import check_members, read_members
from tessarr.codecs.raw import corrupt, flat_bytes
from tessarr.errors import CodecError
from tessarr.types import JSON, AnyArray, Buffer, JSONObject, Shape

_WIDTHS = (0, 1, 2, 4, 8, 16, 32)
"""Bits of an index."""
_TABLE_BITS = 24
_LARGE_BLOCK = 1 << 20
"""Elements from which on a block, which is decoded whole, must not be much larger than its chunk."""
_Words = npt.NDArray[np.uint32]


def _block_size(value: object) -> str | None:
    fine = (
        isinstance(value, list | tuple) and len(value) == 3 and all(type(n) is int and 0 < n < 1 << 32 for n in value)
    )
    return None if fine else f"must be three positive integers, got {value!r}"


_CHECKS = {"block_size": _block_size}


@dataclass(frozen=True, slots=True)
class CompressedSegmentationCodec(ArrayToBytes):
    """Store labels as indices into the tables of blocks."""

    name = "tessarr.compressed_segmentation"
    block_size: tuple[int, int, int]
    """Lengths of a block along x, y and z, as Neuroglancer lists them."""

    def __post_init__(self) -> None:
        check_members(self.name, {"block_size": list(self.block_size)}, _CHECKS)
        object.__setattr__(self, "block_size", tuple(self.block_size))

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS, required=("block_size",)))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"block_size": list(self.block_size)}}

    def encoded_size(self, spec: ChunkSpec) -> None:
        if spec.data_type.name not in ("uint32", "uint64") or len(spec.shape) < 3:
            raise CodecError(
                "compressed segmentation cannot hold such chunks",
                codec=self.name,
                expected="uint32 or uint64 with the axes …, z, y, x",
                got=f"shape {spec.shape} of {spec.data_type.name}",
            )
        if prod(self.block_size) > max(_LARGE_BLOCK, 16 * prod(spec.shape)):
            raise CodecError(
                "a block is much larger than a chunk", codec=self.name, expected=spec.shape, got=self.block_size
            )

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        padding = [(0, -n % m) for n, m in zip(spec.shape[-3:], reversed(self.block_size), strict=True)]
        channels = np.ascontiguousarray(chunk).reshape(-1, *spec.shape[-3:])
        parts: list[_Words] = []
        at, offsets = len(channels), []
        for channel in channels:
            offsets.append(at)
            parts.append(self._encode_channel(np.pad(channel, padding, "edge") if channel.size else channel))
            at += len(parts[-1])
        return np.concatenate([np.array(offsets, np.uint32), *parts]).astype("<u4").tobytes()

    def _encode_channel(self, channel: AnyArray) -> _Words:
        blocks = _as_blocks(channel, self._block)
        parts: list[_Words] = []
        headers = np.zeros((len(blocks), 2), np.uint32)
        at, tables = headers.size, dict[bytes, int]()
        for number, block in enumerate(blocks):
            labels, indices = np.unique(block, return_inverse=True)
            bits = next(width for width in _WIDTHS if len(labels) <= 1 << width)
            packed, table = _pack(indices, bits), _as_words(labels)
            headers[number, 1] = at
            at += len(packed)
            parts.append(packed)
            start = tables.setdefault(table.tobytes(), at)
            if start == at:
                parts.append(table)
                at += len(table)
            if start >> _TABLE_BITS:
                raise CodecError("a chunk has too many labels for its encoding", codec=self.name)
            headers[number, 0] = start | bits << _TABLE_BITS
        return np.concatenate([headers.reshape(-1), *parts])

    @property
    def _block(self) -> Shape:
        return self.block_size[::-1]

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        source = flat_bytes(data)
        if len(source) % 4:
            raise corrupt(self.name, f"{len(source)} bytes are not whole words")
        words = source.tobytes()
        found = np.frombuffer(words, "<u4").astype(np.uint32, copy=False)
        channels = prod(spec.shape[:-3])
        if len(found) < channels:
            raise corrupt(self.name, f"{len(source)} bytes are shorter than the offsets of {channels} channels")
        whole = np.empty((channels, *spec.shape[-3:]), spec.dtype)
        for number, channel in enumerate(whole):
            if channel.size:
                self._decode_channel(found[found[number] :], channel)
        return whole.reshape(spec.shape)

    def _decode_channel(self, words: _Words, out: AnyArray) -> None:
        grid = tuple(-(-n // m) for n, m in zip(out.shape, self._block, strict=True))
        count = prod(grid)
        if len(words) < 2 * count:
            raise corrupt(self.name, f"{len(words)} words are shorter than the headers of {count} blocks")
        headers = words[: 2 * count].reshape(count, 2)
        tables, bits = (headers[:, 0] & ((1 << _TABLE_BITS) - 1)).astype(np.int64), headers[:, 0] >> _TABLE_BITS
        if not np.isin(bits, _WIDTHS).all():
            raise corrupt(self.name, f"indices of {int(bits[~np.isin(bits, _WIDTHS)][0])} bits")
        blocks = np.empty((count, prod(self._block)), out.dtype)
        for width in _WIDTHS:
            chosen = np.flatnonzero(bits == width)
            if len(chosen):
                indices = self._unpack(words, headers[chosen, 1].astype(np.int64), width, blocks.shape[1])
                blocks[chosen] = self._look_up(words, tables[chosen, None] + indices * (out.itemsize // 4), out.dtype)
        padded = blocks.reshape(*grid, *self._block).transpose(0, 3, 1, 4, 2, 5)
        padded = padded.reshape([n * m for n, m in zip(grid, self._block, strict=True)])
        out[...] = padded[tuple(map(slice, out.shape))]

    def _unpack(self, words: _Words, starts: npt.NDArray[np.int64], width: int, count: int) -> npt.NDArray[np.int64]:
        """Read `count` indices of `width` bits at each of `starts`; for no bits one column of zeros."""
        if width == 0:
            return np.zeros((len(starts), 1), np.int64)
        places = starts[:, None] + np.arange(-(-count * width // 32))
        if int(places.max()) >= len(words):
            raise corrupt(self.name, "the indices of a block are beyond the end")
        shifts = np.arange(0, 32, width, dtype=np.uint32)
        indices = (words[places][:, :, None] >> shifts) & np.uint32((1 << width) - 1)
        found: npt.NDArray[np.int64] = indices.reshape(len(starts), -1)[:, :count].astype(np.int64)
        return found

    def _look_up(self, words: _Words, places: npt.NDArray[np.int64], dtype: np.dtype[np.generic]) -> AnyArray:
        last = int(places.max()) + dtype.itemsize // 4
        if last > len(words):
            raise corrupt(self.name, "a label is beyond the end")
        if dtype.itemsize == 4:
            return words[places]
        return words[places] | words[places + 1].astype(np.uint64) << np.uint64(32)


def _as_blocks(channel: AnyArray, block: Shape) -> AnyArray:
    """Cut a padded channel into blocks: one row each, x fastest."""
    grid = [n // m for n, m in zip(channel.shape, block, strict=True)]
    cut = channel.reshape([n for pair in zip(grid, block, strict=True) for n in pair])
    return cut.transpose(0, 2, 4, 1, 3, 5).reshape(prod(grid), prod(block))


def _as_words(labels: AnyArray) -> _Words:
    return labels.astype(f"<u{labels.itemsize}").view("<u4").astype(np.uint32)


def _pack(indices: AnyArray, width: int) -> _Words:
    """Pack indices of `width` bits into words, the first one in the lowest bits."""
    if width == 0:
        return np.empty(0, np.uint32)
    each = 32 // width
    padded = np.zeros(-(-indices.size // each) * each, np.uint32)
    padded[: indices.size] = indices.reshape(-1)
    shifts = np.arange(0, 32, width, dtype=np.uint32)
    packed: _Words = np.bitwise_or.reduce(padded.reshape(-1, each) << shifts, axis=1)
    return packed
