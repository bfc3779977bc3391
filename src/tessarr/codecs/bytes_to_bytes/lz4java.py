"""``tessarr.lz4java`` codec: the block stream of lz4-java, which N5 calls ``lz4``.

Source: lz4-java 1.8, ``LZ4BlockOutputStream``; N5 4.0, "lz4". No name is registered; numcodecs' ``lz4`` is another format
(numcodecs 175). `tessarr.stores.n5` describes N5 datasets with it.

>>> codec = Lz4JavaCodec.from_json({"block_size": 65536})
>>> bytes(codec.encode(b"abc"))[:8]
b'LZ4Block'

Each block has a magic number, a byte for method and size, two sizes, and an xxHash of its content; an empty block ends the
stream. Checksums are verified.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tessarr.codecs.members import check_members, integer, read_members
from tessarr.codecs.raw import UNKNOWN_SIZE_LIMIT, checksum_error, corrupt, flat_bytes, size_error
from tessarr.codecs.steps import StepCodec
from tessarr.types import JSON, Buffer, JSONObject

_CHECKS = {"block_size": integer(64, 1 << 25)}
_HEAD = struct.Struct("<8sBIII")
_MAGIC = b"LZ4Block"
_RAW, _LZ4 = 0x10, 0x20
_SEED, _MASK = 0x9747B28C, 0x0FFFFFFF
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)


@dataclass(frozen=True, slots=True)
class Lz4JavaCodec(StepCodec):
    """Compress with lz4, in the blocks of lz4-java."""

    name = "tessarr.lz4java"
    block_size: int = 1 << 16
    """Bytes of a block before compression."""

    def __post_init__(self) -> None:
        check_members(self.name, {"block_size": self.block_size}, _CHECKS)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"block_size": self.block_size}}

    def step(self) -> tuple[str, JSONObject]:
        return "lz4java", {"block_size": self.block_size}

    def encoded_size(self, nbytes: int) -> None:
        return

    def _encode(self, data: Buffer) -> Buffer:
        from tessarr.common.numcodecs import numcodecs

        plain, parts = flat_bytes(data).tobytes(), []
        level = max(0, (self.block_size - 1).bit_length() - 10)
        for at in range(0, len(plain), self.block_size):
            piece = plain[at : at + self.block_size]
            packed = bytes(numcodecs.lz4.compress(piece))[4:]  # numcodecs puts the size in front
            method, body = (_LZ4, packed) if len(packed) < len(piece) else (_RAW, piece)
            parts += [_HEAD.pack(_MAGIC, method | level, len(body), len(piece), xxh32(piece) & _MASK), body]
        return b"".join([*parts, _HEAD.pack(_MAGIC, _RAW | level, 0, 0, 0)])

    def _decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        source = flat_bytes(data).tobytes()
        limit = UNKNOWN_SIZE_LIMIT if nbytes is None else nbytes
        at, total, parts = 0, 0, []
        while True:
            if len(source) < at + _HEAD.size:
                raise corrupt(self.name, "the stream is truncated")
            magic, token, stored, size, checksum = _HEAD.unpack_from(source, at)
            at += _HEAD.size
            if magic != _MAGIC:
                raise corrupt(self.name, "a block has no magic number")
            if size == 0:
                break
            total += size
            if total > limit:
                raise size_error(self.name, nbytes, "more")
            piece = self._block(token & 0xF0, source[at : at + stored], stored, size)
            if xxh32(piece) & _MASK != checksum:
                raise checksum_error(self.name, checksum, xxh32(piece) & _MASK)
            parts.append(piece)
            at += stored
        if stored or checksum or at != len(source):
            raise corrupt(self.name, f"{len(source) - at} bytes follow the end of the stream")
        if nbytes is not None and total != nbytes:
            raise size_error(self.name, nbytes, f"{total} bytes")
        return b"".join(parts)

    def _block(self, method: int, body: bytes, stored: int, size: int) -> bytes:
        from tessarr.common.numcodecs import numcodecs

        if len(body) != stored:
            raise corrupt(self.name, "a block is truncated")
        if method == _RAW and stored == size:
            return body
        if method != _LZ4 or size > 255 * stored:  # no byte of lz4 decodes to more
            raise corrupt(self.name, f"a block of method {method:#x} has {stored} bytes for {size}")
        try:
            found = bytes(numcodecs.lz4.decompress(size.to_bytes(4, "little") + body))
        except RuntimeError as error:
            raise corrupt(self.name, error) from error
        if len(found) != size:
            raise corrupt(self.name, f"a block decodes to {len(found)} bytes, not {size}")
        return found


def xxh32(data: bytes, seed: int = _SEED) -> int:
    """Return the 32-bit xxHash of `data`. Source: xxHash, "xxhash_spec.md".

    >>> hex(xxh32(b"", 0)), hex(xxh32(b"abc", 0))
    ('0x2cc5d05', '0x32d153ff')
    """
    one, two, three, four, five = _PRIMES
    mask, at = 0xFFFFFFFF, 0

    def rotated(value: int, by: int) -> int:
        value &= mask
        return (value << by | value >> (32 - by)) & mask

    if len(data) >= 16:
        sums = [seed + one + two, seed + two, seed, seed - one]
        while at + 16 <= len(data):
            for lane, word in enumerate(struct.unpack_from("<4I", data, at)):
                sums[lane] = rotated(sums[lane] + word * two, 13) * one & mask
            at += 16
        result = sum(rotated(value, by) for value, by in zip(sums, (1, 7, 12, 18), strict=True))
    else:
        result = seed + five
    result += len(data)
    while at + 4 <= len(data):
        result = rotated(result + int.from_bytes(data[at : at + 4], "little") * three, 17) * four
        at += 4
    for byte in data[at:]:
        result = rotated(result + byte * five, 11) * one
    result &= mask
    for by, prime in ((15, two), (13, three), (16, 1)):
        result = (result ^ result >> by) * prime & mask
    return result
