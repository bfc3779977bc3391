from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from numcodecs import zstd as numcodecs_zstd

from tessarr.codecs import ZstdCodec
from tessarr.errors import CodecError, MetadataValidationError

RAW, RLE, COMPRESSED = 0, 1, 2


def block(kind: int, size: int, body: bytes, *, last: bool) -> bytes:
    return struct.pack("<I", last | kind << 1 | size << 3)[:3] + body


def frame(*blocks: bytes, content: int | None = None, dictionary: int = 0) -> bytes:
    """A frame made by hand, RFC 8878: 8-byte content size or none, window of 1 MiB."""
    descriptor = (0 if content is None else 3 << 6) | (3 if dictionary else 0)
    head = b"\x28\xb5\x2f\xfd" + bytes([descriptor, 10 << 3])
    head += struct.pack("<I", dictionary) if dictionary else b""
    return head + (b"" if content is None else struct.pack("<Q", content)) + b"".join(blocks)


def skippable(body: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A53, len(body)) + body


@pytest.mark.parametrize(
    "configuration", [{"level": 23}, {"level": -131073}, {"level": "3"}, {"level": 3.0}, {"level": 1, "checksum": 1}]
)
def test_a_wrong_configuration_is_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        ZstdCodec.from_json(configuration)


def test_the_document_always_has_both_members() -> None:
    assert ZstdCodec.from_json({"level": 1}).to_json()["configuration"] == {"level": 1, "checksum": False}


@pytest.mark.parametrize("level", [-131072, -1, 0, 1, 22])
def test_every_level_can_be_read_by_another_library(level: int) -> None:
    given = bytes(range(256)) * 50
    assert numcodecs_zstd.decompress(bytes(ZstdCodec(level=level).encode(given))) == given


def test_a_checksum_is_stored_and_verified() -> None:
    encoded = bytearray(ZstdCodec(checksum=True).encode(b"x" * 1000))
    assert encoded[4] & 4
    encoded[-1] ^= 1
    with pytest.raises(CodecError):
        ZstdCodec().decode(bytes(encoded), 1000)


class TestFrames:
    """Streams that no encoder of ours writes, and any writer may."""

    def test_a_frame_that_does_not_state_its_size_is_read(self) -> None:
        stored = frame(block(RAW, 3, b"abc", last=False), block(RLE, 5, b"x", last=True))
        assert bytes(ZstdCodec().decode(stored, 8)) == b"abcxxxxx"
        assert bytes(ZstdCodec().decode(stored, None)) == b"abcxxxxx"
        for wrong in (7, 9, 0, 1 << 40):
            with pytest.raises(CodecError):
                ZstdCodec().decode(stored, wrong)

    def test_several_frames_and_skippable_ones_are_read(self) -> None:
        stored = skippable(b"meta") + frame(block(RAW, 3, b"abc", last=True), content=3) + skippable(b"")
        stored += frame(block(RLE, 4, b"z", last=True))
        assert bytes(ZstdCodec().decode(stored, 7)) == b"abczzzz"
        with pytest.raises(CodecError):
            ZstdCodec().decode(stored, 3)

    def test_a_first_frame_of_the_right_size_does_not_hide_a_second(self) -> None:
        first = frame(block(RAW, 3, b"abc", last=True), content=3)
        with pytest.raises(CodecError):
            ZstdCodec().decode(first + first, 3)
        assert bytes(ZstdCodec().decode(first + skippable(b"tail"), 3)) == b"abc"

    def test_stated_sizes_that_wrap_around_are_refused(self) -> None:
        bad = frame(block(RAW, 3, b"abc", last=True), content=2**64 - 1)
        good = frame(block(RAW, 4, b"abcd", last=True), content=4)
        for nbytes in (3, None):
            with pytest.raises(CodecError):
                ZstdCodec().decode(good + bad, nbytes)

    def test_no_content_at_all_is_an_empty_chunk(self) -> None:
        assert bytes(ZstdCodec().decode(frame(block(RAW, 0, b"", last=True), content=0), 0)) == b""
        assert bytes(ZstdCodec().decode(skippable(b"only"), 0)) == b""

    def test_a_bomb_is_refused_before_memory_is_taken(self) -> None:
        run = block(RLE, 128 << 10, b"\0", last=False)
        bomb = frame(run * 20_000, block(RAW, 0, b"", last=True))  # 80 kB for 2.6 GB
        with pytest.raises(CodecError, match="wrong size"):
            ZstdCodec().decode(bomb, None)
        with pytest.raises(CodecError):
            ZstdCodec().decode(bomb, 1000)
        lie = frame(block(RLE, 5, b"x", last=True), content=1 << 60)
        for nbytes in (None, 5, 1 << 60):
            with pytest.raises(CodecError):
                ZstdCodec().decode(lie, nbytes)

    @pytest.mark.parametrize(
        "stored",
        [
            frame(block(RAW, 3, b"abc", last=True), dictionary=7),
            frame(block(3, 3, b"abc", last=True)),
            frame(block(RAW, 1 << 20, b"abc", last=True)),
            frame(block(RAW, 3, b"abc", last=False)),
            b"\x28\xb5\x2f\xfd\x28\x00\x01\x00\x00",
            b"\x25\xb5\x2f\xfd" + bytes(20),
            skippable(b"abc")[:-1],
            b"",
        ],
        ids=[
            "dictionary",
            "reserved-block",
            "block-too-long",
            "no-last-block",
            "reserved-bit",
            "version-0.5",
            "cut",
            "empty",
        ],
    )
    def test_malformed_frames_are_errors(self, stored: bytes) -> None:
        for nbytes in (3, None):
            with pytest.raises(CodecError):
                ZstdCodec().decode(stored, nbytes)


def test_decode_into_writes_into_the_memory_given() -> None:
    out = np.zeros(1000, np.uint8)
    assert ZstdCodec().decode_into(ZstdCodec().encode(b"y" * 1000), memoryview(out))
    assert out.tobytes() == b"y" * 1000
