"""The ``gzip`` codec: deflate in the gzip container.

Source: Zarr v3.1, "Gzip codec"; RFC 1952. v3 name ``gzip``, v2 id ``gzip``; ``numcodecs.gzip`` is the same bytes.

>>> GzipCodec.from_json({"level": 5}).to_json()
{'name': 'gzip', 'configuration': {'level': 5}}

``level`` is 0 (stored) to 9. Equal data gives equal bytes: no time, no file name, operating system 255 ("unknown").
Decoding accepts any RFC 1952 stream, with several members too; bytes after the last member are an error (Python's and
zarr-python's readers ignore zero padding there).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tessarr.codecs.base import BytesToBytes
from tessarr.codecs.members import check_members, integer, read_members
from tessarr.codecs.raw import decompress, flat_bytes
from tessarr.types import JSON, Buffer, JSONObject

_CHECKS = {"level": integer(0, 9)}
_GZIP_CONTAINER = 31
"""zlib's window bits: 15, plus 16 for the gzip container."""
_OS_UNKNOWN = 255


@dataclass(frozen=True, slots=True)
class GzipCodec(BytesToBytes):
    """Compress with deflate, in the gzip container with its CRC-32."""

    name = "gzip"
    level: int = 5
    """0 (stored) to 9 (smallest)."""

    def __post_init__(self) -> None:
        check_members(self.name, {"level": self.level}, _CHECKS)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        return cls(**read_members(cls.name, configuration, _CHECKS, required=("level",)))

    def to_json(self) -> JSONObject:
        return {"name": self.name, "configuration": {"level": self.level}}

    def encoded_size(self, nbytes: int) -> None:
        return

    def encode(self, data: Buffer) -> Buffer:
        """Encode one gzip member."""
        encoded = bytearray(zlib.compress(flat_bytes(data), self.level, _GZIP_CONTAINER))
        encoded[9] = _OS_UNKNOWN  # zlib writes the number of its build platform
        return encoded

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        return decompress(
            self.name, lambda: zlib.decompressobj(_GZIP_CONTAINER), data, nbytes, errors=(zlib.error,), several=True
        )
