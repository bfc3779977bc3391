from __future__ import annotations

import struct
import threading
from typing import Any

import numpy as np
import pytest
from numcodecs import blosc as numcodecs_blosc

from tessarr.codecs import BloscCodec
from tessarr.codecs.array_to_array.cast_value import CastValueCodec
from tessarr.codecs.base import ChunkSpec
from tessarr.codecs.bytes_to_bytes.blosc import _LONGEST_RUN, CName
from tessarr.codecs.fit import fit_chain
from tessarr.codecs.parse import codec_from
from tessarr.errors import CodecError, MetadataValidationError
from tests.codecs.samples import configuration_of, spec_of

GIVEN: dict[str, Any] = {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
RAMP = np.arange(5000, dtype="<i4")


def header(encoded: bytes) -> tuple[int, ...]:
    return struct.unpack("<4B3I", bytes(encoded[:16]))


@pytest.mark.spec("V3-BLOSC-08")
def test_the_example_of_the_specification() -> None:
    assert BloscCodec.from_json(GIVEN).to_json() == {"name": "blosc", "configuration": GIVEN}


@pytest.mark.spec("V3-BLOSC-01", "V3-BLOSC-02", "V3-BLOSC-03", "V3-BLOSC-04", "V3-BLOSC-07")
@pytest.mark.parametrize(
    "change",
    [
        {"cname": "brotli"},
        {"clevel": 10},
        {"clevel": -1},
        {"clevel": True},
        {"shuffle": 1},
        {"shuffle": -1},
        {"shuffle": "auto"},
        {"shuffle": None},
        {"typesize": 0},
        {"typesize": None},
        {"blocksize": -1},
        {"blocksize": 1.5},
    ],
)
def test_wrong_members_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        BloscCodec.from_json({**GIVEN, **change})


@pytest.mark.spec("V3-BLOSC-04")
@pytest.mark.parametrize("member", GIVEN)
def test_every_member_is_required_but_typesize_without_shuffle(member: str) -> None:
    with pytest.raises(MetadataValidationError) as caught:
        BloscCodec.from_json({name: value for name, value in GIVEN.items() if name != member})
    assert (member,) in [problem.loc for problem in caught.value.problems]
    plain = {**GIVEN, "shuffle": "noshuffle"}
    del plain["typesize"]
    assert BloscCodec.from_json(plain).to_json()["configuration"] == plain


@pytest.mark.spec("V3-BLOSC-01")
@pytest.mark.parametrize("cname", ["lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"])
def test_every_compressor_works_or_says_that_it_is_missing(cname: CName) -> None:
    codec = BloscCodec(4, cname, 5, "shuffle")
    if cname in numcodecs_blosc.list_compressors():
        assert bytes(codec.decode(codec.encode(RAMP), RAMP.nbytes)) == RAMP.tobytes()
    else:
        with pytest.raises(CodecError, match="snappy"):
            codec.encode(RAMP)


@pytest.mark.spec("V3-BLOSC-02")
def test_level_0_stores_the_bytes_as_they_are() -> None:
    encoded = bytes(BloscCodec(4, "lz4", 0, "noshuffle").encode(RAMP))
    assert header(encoded)[2] & 2
    assert encoded[16:] == RAMP.tobytes()


@pytest.mark.spec("V3-BLOSC-07", "V3-BLOSC-09")
def test_the_header_has_the_block_size_and_type_size_asked_for() -> None:
    encoded = bytes(BloscCodec(4, "zstd", 5, "bitshuffle", 4096).encode(RAMP))
    assert len(encoded) > 16
    version, _, flags, typesize, nbytes, blocksize, stored = header(encoded)
    assert (version, flags & 4, typesize, nbytes, blocksize, stored) == (2, 4, 4, RAMP.nbytes, 4096, len(encoded))


@pytest.mark.spec("V3-BLOSC-05")
@pytest.mark.parametrize(
    ("data_type", "typesize", "shuffle"),
    [("float64", 8, "shuffle"), ("uint8", 1, "bitshuffle"), ("bool", 1, "bitshuffle"), ("string", 1, "noshuffle")],
)
def test_what_is_left_open_is_chosen_for_the_elements_and_recorded(data_type: str, typesize: int, shuffle: str) -> None:
    fitted = BloscCodec().fit(spec_of(data_type, (3,)))
    assert (fitted.typesize, fitted.shuffle) == (typesize, shuffle)
    assert configuration_of(fitted)["typesize"] == typesize
    assert BloscCodec(2, shuffle="bitshuffle").fit(spec_of(data_type, (3,))).typesize == 2


@pytest.mark.spec("V3-BLOSC-05")
def test_an_incomplete_codec_has_no_document() -> None:
    with pytest.raises(MetadataValidationError, match="not complete"):
        BloscCodec().to_json()


@pytest.mark.spec("V3-BLOSC-06")
def test_the_choice_looks_through_the_chain() -> None:
    chain = [CastValueCodec(data_type="int16"), codec_from({"name": "bytes", "configuration": {"endian": "little"}})]
    fitted = fit_chain([*chain, BloscCodec()], spec_of("float64", (4,)))
    assert isinstance(fitted[-1], BloscCodec)
    assert fitted[-1].typesize == 2


class TestHostileHeaders:
    """Nothing of this reaches the C library."""

    @pytest.fixture(autouse=True)
    def _no_c_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(numcodecs_blosc, "decompress", lambda *_: pytest.fail("the C library was called"))

    def changed(self, at: int, value: bytes) -> bytes:
        encoded = bytearray(BloscCodec(4, "zstd", 5, "shuffle", 4096).encode(RAMP))
        encoded[at : at + len(value)] = value
        return bytes(encoded)

    @pytest.mark.spec("V3-BLOSC-10")
    @pytest.mark.parametrize("claimed", [0, 1, RAMP.nbytes - 1, RAMP.nbytes + 1, 2**31, 2**32 - 1])
    def test_a_size_that_is_not_the_chunks_is_refused(self, claimed: int) -> None:
        with pytest.raises(CodecError, match="wrong size"):
            BloscCodec().decode(self.changed(4, struct.pack("<I", claimed)), RAMP.nbytes)

    @pytest.mark.spec("V3-BLOSC-09")
    @pytest.mark.parametrize("version", [0, 1, 3, 4, 5, 255])
    def test_other_versions_and_blosc_2_are_refused(self, version: int) -> None:
        with pytest.raises(CodecError, match="Blosc"):
            BloscCodec().decode(self.changed(0, bytes([version])), RAMP.nbytes)

    @pytest.mark.spec("V3-BLOSC-09")
    def test_the_extended_header_of_blosc_2_is_refused(self) -> None:
        with pytest.raises(CodecError, match="Blosc 2"):
            BloscCodec().decode(self.changed(2, b"\x05"), RAMP.nbytes)

    @pytest.mark.parametrize(
        ("at", "value"),
        [
            (2, b"\x09"),
            (3, b"\0"),
            (8, b"\0\0\0\0"),
            (8, b"\xff\xff\xff\xff"),
            (8, b"\x01\0\0\0"),
            (12, b"\0\0\0\0"),
            (12, b"\xff\xff\xff\xff"),
            (16, b"\0\0\0\0"),
            (16, b"\xff\xff\xff\x7f"),
            (16, b"\xff\xff\xff\xff"),
            (20, b"\x10\0\0\0"),
        ],
    )
    def test_impossible_values_are_refused(self, at: int, value: bytes) -> None:
        with pytest.raises(CodecError):
            BloscCodec().decode(self.changed(at, value), RAMP.nbytes)

    @pytest.mark.parametrize("length", [*range(16, 60), 100, 500])
    def test_a_block_that_begins_or_ends_outside_is_refused(self, length: int) -> None:
        encoded = bytearray(BloscCodec(4, "zstd", 5, "shuffle", 4096).encode(RAMP)[:length])
        encoded[12:16] = struct.pack("<I", length)
        with pytest.raises(CodecError):
            BloscCodec().decode(bytes(encoded), RAMP.nbytes)

    def test_a_stored_frame_must_have_the_size_it_says(self) -> None:
        encoded = bytearray(BloscCodec(4, "lz4", 0, "noshuffle").encode(RAMP)) + b"more"
        encoded[12:16] = struct.pack("<I", len(encoded))
        with pytest.raises(CodecError):
            BloscCodec().decode(bytes(encoded), RAMP.nbytes)

    def test_a_blosclz_length_that_overflows_is_refused(self) -> None:
        body = b"\0\xe0\0" + b"\xff" * (_LONGEST_RUN + 1000) + b"\0\0"
        nbytes = len(body) * 2
        frame = struct.pack("<4B3I", 2, 1, 0x10, 1, nbytes, nbytes, 24 + len(body))
        frame += struct.pack("<II", 20, len(body)) + body
        with pytest.raises(CodecError, match="overflows"):
            BloscCodec().decode(frame, nbytes)


@pytest.mark.spec("V3-BLOSC-10")
def test_decoding_goes_by_the_header_not_by_the_configuration() -> None:
    encoded = BloscCodec(8, "zstd", 9, "bitshuffle", 512).encode(RAMP)
    other = BloscCodec(1, "lz4", 1, "noshuffle")
    assert bytes(other.decode(encoded, RAMP.nbytes)) == RAMP.tobytes()


def test_more_than_2_gib_is_a_clear_error() -> None:
    codec = BloscCodec(1, "lz4", 1, "noshuffle")
    with pytest.raises(CodecError, match="too large"):
        codec.encode(np.zeros(2**31 - 1, np.uint8))


def test_the_librarys_switch_for_threads_is_left_alone_and_no_threads_of_its_own_are_used() -> None:
    before = numcodecs_blosc.use_threads
    seen: list[bool] = []
    original = numcodecs_blosc.compress

    def spy(*args: Any, **options: Any) -> Any:
        seen.append(threading.current_thread() is threading.main_thread())
        return original(*args, **options)

    numcodecs_blosc.compress = spy
    try:
        encoded = BloscCodec(4, "lz4", 5, "shuffle").encode(RAMP)
    finally:
        numcodecs_blosc.compress = original
    assert seen == [False]
    assert numcodecs_blosc.use_threads is before
    assert bytes(BloscCodec().decode(encoded, RAMP.nbytes)) == RAMP.tobytes()


def test_v2_chunks_are_the_same_bytes() -> None:
    encoded = numcodecs_blosc.compress(RAMP, b"lz4", 5, 1)
    assert bytes(BloscCodec().decode(encoded, RAMP.nbytes)) == RAMP.tobytes()
    spec = spec_of("int32", (5000,))
    assert isinstance(spec, ChunkSpec)
    assert BloscCodec(cname="lz4").fit(spec).encode(RAMP) == encoded
