"""The ``crc32c`` codec: a CRC-32C (Castagnoli) checksum of four bytes, little-endian, after the data.

Source: Zarr v3.1, "CRC32C checksum codec"; RFC 3720. v3 name ``crc32c``. numcodecs' ``crc32c`` filter (v2, and
``numcodecs.crc32c`` in v3) has the same bytes when its ``location`` is "end", its default.

>>> Crc32cCodec().to_json()
{'name': 'crc32c'}
>>> bytes(Crc32cCodec().encode(b"123456789"))[-4:].hex()
'839206e3'

Decoding gives a view of the stored bytes, not a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tessarr.codecs.base import BytesToBytes
from tessarr.codecs.members import read_members
from tessarr.codecs.raw import checksum_error, flat_bytes, size_error
from tessarr.errors import CodecError
from tessarr.types import JSON, Buffer, JSONObject


@dataclass(frozen=True, slots=True)
class Crc32cCodec(BytesToBytes):
    """Append the CRC-32C of the data."""

    name = "crc32c"

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        read_members(cls.name, configuration, {})
        return cls()

    def to_json(self) -> JSONObject:
        return {"name": self.name}

    def encoded_size(self, nbytes: int) -> int:
        return nbytes + 4

    def encode(self, data: Buffer) -> Buffer:
        """Return `data` and the four bytes of its checksum."""
        from google_crc32c import value

        flat = flat_bytes(data)
        return b"".join((flat.data, value(flat).to_bytes(4, "little")))

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        """Return a view of all but the last four bytes of `data`. Raises `ChecksumError` when they do not match."""
        from google_crc32c import value

        flat = flat_bytes(data)
        if len(flat) < 4:
            raise CodecError(
                "a value is shorter than its checksum", codec=self.name, expected="4 bytes", got=f"{len(flat)} bytes"
            )
        body, stored = flat[:-4], int.from_bytes(flat[-4:].tobytes(), "little")
        if nbytes is not None and len(body) != nbytes:
            raise size_error(self.name, nbytes, f"{len(body)} bytes")
        computed: int = value(body)
        if computed != stored:
            raise checksum_error(self.name, stored, computed)
        return body.data
