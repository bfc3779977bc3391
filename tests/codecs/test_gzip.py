from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy as np
import pytest

from tessarr.codecs import GzipCodec
from tessarr.errors import CodecError, MetadataValidationError


@pytest.mark.spec("V3-GZIP-01")
@pytest.mark.parametrize(
    "configuration", [{"level": -1}, {"level": 10}, {"level": "5"}, {"level": 1.5}, {"level": True}, {}]
)
def test_a_wrong_or_missing_level_is_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        GzipCodec.from_json(configuration)
    assert caught.value.problems[0].loc == ("level",)


def test_the_constructor_refuses_what_the_document_could_not_hold() -> None:
    with pytest.raises(ValueError, match="0 to 9"):
        GzipCodec(level=10)


@pytest.mark.spec("V3-GZIP-02")
def test_level_0_is_still_gzip() -> None:
    encoded = GzipCodec(level=0).encode(b"plain text" * 10)
    assert bytes(encoded[:2]) == b"\x1f\x8b"
    assert b"plain text" in encoded
    assert gzip.decompress(encoded) == b"plain text" * 10


@pytest.mark.spec("V3-GZIP-03")
@pytest.mark.parametrize("level", range(10))
def test_equal_data_gives_equal_bytes_without_time_or_platform(level: int) -> None:
    encoded = bytes(GzipCodec(level=level).encode(b"x" * 1000))
    assert encoded == bytes(GzipCodec(level=level).encode(np.full(1000, ord("x"), np.uint8)))
    assert encoded[3:8] == b"\0" * 5  # flags and MTIME
    assert encoded[9] == 255
    assert gzip.decompress(encoded) == b"x" * 1000


@pytest.mark.spec("V3-GZIP-04")
@pytest.mark.parametrize("at", [-8, -5, -4, -1])
def test_a_wrong_checksum_or_length_is_an_error(at: int) -> None:
    encoded = bytearray(GzipCodec().encode(b"x" * 1000))
    encoded[at] ^= 1
    with pytest.raises(CodecError, match="gzip data is corrupt"):
        GzipCodec().decode(encoded, 1000)


@pytest.mark.spec("V3-GZIP-04")
@pytest.mark.parametrize("tail", [b"\0", b"\0" * 8, b"garbage", b"\x1f\x8b"])
def test_bytes_after_the_last_member_are_an_error(tail: bytes) -> None:
    with pytest.raises(CodecError):
        GzipCodec().decode(gzip.compress(b"abc") + tail, 3)


def test_empty_members_are_read_and_many_of_them_in_linear_time() -> None:
    many = gzip.compress(b"", mtime=0) * 20_000 + gzip.compress(b"abc")
    assert bytes(GzipCodec().decode(many, 3)) == b"abc"


def test_a_bomb_stops_at_the_size_of_the_chunk() -> None:
    bomb = zlib.compress(bytes(200_000_000), 9, 31)
    with pytest.raises(CodecError, match="wrong size") as caught:
        GzipCodec().decode(bomb, 1000)
    assert caught.value.codec == "gzip"
    assert caught.value.expected == "1000 bytes"


@pytest.mark.parametrize("given", [b"", b"\x1f", b"\x1f\x8b\x08", b"PK\x03\x04", zlib.compress(b"abc")])
def test_what_is_no_gzip_is_an_error(given: bytes) -> None:
    with pytest.raises(CodecError):
        GzipCodec().decode(given, 3)
