from __future__ import annotations

import pytest

from tessarr.codecs import Crc32cCodec
from tessarr.errors import ChecksumError, CodecError, MetadataValidationError


@pytest.mark.spec("V3-CRC-01")
def test_there_is_no_configuration() -> None:
    assert Crc32cCodec.from_json({}) == Crc32cCodec()
    assert Crc32cCodec().to_json() == {"name": "crc32c"}
    with pytest.raises(MetadataValidationError):
        Crc32cCodec.from_json({"x": 1})


@pytest.mark.spec("V3-CRC-02")
@pytest.mark.parametrize(
    ("given", "checksum"),
    [
        (b"123456789", "839206e3"),
        (b"\0" * 32, "aa36918a"),
        (b"\xff" * 32, "43aba862"),
        (bytes(range(32)), "4e79dd46"),
        (bytes(reversed(range(32))), "5cdb3f11"),
        (b"", "00000000"),
    ],
)
def test_the_checksums_of_rfc_3720(given: bytes, checksum: str) -> None:
    encoded = bytes(Crc32cCodec().encode(given))
    assert encoded == given + bytes.fromhex(checksum)
    assert bytes(Crc32cCodec().decode(encoded, len(given))) == given


@pytest.mark.spec("V3-CRC-03")
def test_any_flipped_bit_is_a_checksum_error() -> None:
    encoded = bytearray(Crc32cCodec().encode(b"some chunk"))
    for bit in range(8 * len(encoded)):
        encoded[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChecksumError, match="does not match"):
            Crc32cCodec().decode(bytes(encoded), 10)
        encoded[bit // 8] ^= 1 << bit % 8


@pytest.mark.spec("V3-CRC-04")
@pytest.mark.parametrize("length", range(4))
def test_fewer_than_four_bytes_are_an_error(length: int) -> None:
    with pytest.raises(CodecError, match="shorter than its checksum"):
        Crc32cCodec().decode(bytes(length), None)


def test_decoding_copies_nothing() -> None:
    stored = bytearray(Crc32cCodec().encode(b"abcdef"))
    view = Crc32cCodec().decode(stored, 6)
    assert isinstance(view, memoryview)
    stored[0] = ord("X")
    assert bytes(view) == b"Xbcdef"
