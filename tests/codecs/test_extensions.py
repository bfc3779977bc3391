"""conditional, pad, lzw, singleton_dim, N5 blocks, and names of other packages."""

from __future__ import annotations

import io
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.codecs import (
    BytesCodec,
    ConditionalCodec,
    Crc32cCodec,
    GzipCodec,
    LzwCodec,
    N5DefaultCodec,
    N5VarlenCodec,
    PadCodec,
    SingletonDimCodec,
    TransposeCodec,
    VLenUTF8Codec,
    ZfpCodec,
    ZstdCodec,
)
from tessarr.codecs.base import ArrayToBytes
from tessarr.codecs.bytes_to_bytes.lz4java import Lz4JavaCodec
from tessarr.codecs.parse import codec_from
from tessarr.common import extension
from tessarr.errors import ChecksumError, CodecError, MetadataValidationError, TessarrError
from tests.codecs.samples import data, numbers, spec_of

RUST = pytest.mark.skipif(
    not hasattr(extension.module(), "decode_step"), reason="the Rust module is not built, and does this alone"
)
NATIVE = pytest.mark.parametrize("native", [pytest.param(True, marks=RUST), False], ids=["rust", "python"])


@pytest.fixture
def without_rust(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(extension, "module", lambda: None)


# -- conditional -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REG-14")
def test_the_header_has_a_bit_per_codec_from_the_lowest_on() -> None:
    plain = bytes(1000)
    one = [True, False, True]
    codec = ConditionalCodec((ZstdCodec(), GzipCodec(level=1), Crc32cCodec()), policy=lambda _: one)
    encoded = data(codec.encode(plain))
    assert encoded[0] == 0b101
    assert encoded[1:] == data(Crc32cCodec().encode(ZstdCodec().encode(plain)))
    assert data(codec.decode(encoded, 1000)) == plain
    nine = ConditionalCodec((Crc32cCodec(),) * 9, policy="always")
    assert data(nine.encode(b""))[:2] == b"\xff\x01"
    assert nine.header_bytes == 2
    wide = ConditionalCodec((GzipCodec(level=1),), 32, "never")
    assert data(wide.encode(b"abc")) == b"\0\0\0\0abc"


@pytest.mark.spec("REG-14")
def test_chunks_that_do_not_shrink_are_stored_as_they_are() -> None:
    codec = ConditionalCodec((GzipCodec(level=9),))
    noise = np.random.default_rng(0).bytes(1000)
    assert data(codec.encode(noise)) == b"\0" + noise
    assert len(data(codec.encode(bytes(1000)))) < 50


@pytest.mark.spec("REG-14")
def test_a_reserved_bit_and_a_missing_header_are_errors() -> None:
    codec = ConditionalCodec((GzipCodec(level=1), Crc32cCodec()), 16)
    for wrong in (b"", b"\0", b"\4\0abc", b"\0\1abc"):
        with pytest.raises(CodecError):
            codec.decode(wrong, 3)
    with pytest.raises(CodecError):
        codec.decode(b"\0\0abcd", 3)


@pytest.mark.parametrize(
    "configuration",
    [
        {}, {"codecs": []}, {"codecs": ["bytes"]}, {"codecs": ["nobody"]}, {"codecs": "gzip"},
        {"codecs": ["crc32c"], "header_bits": 0}, {"codecs": ["crc32c"], "header_bits": 7},
        {"codecs": ["crc32c"], "header_bits": "8"}, {"codecs": ["crc32c"] * 9, "header_bits": 8},
        {"codecs": [{"name": "nobody", "must_understand": False}]},
    ],
)  # fmt: skip
def test_another_conditional_configuration_is_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        ConditionalCodec.from_json(configuration)


@RUST
@pytest.mark.spec("REG-14")
@pytest.mark.parametrize("policy", ["compress_if_smaller", "always", "never"])
def test_both_engines_write_the_same_conditional_chunks(policy: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1 << 16, (16, 16), dtype="u2")
    values[:8] = 3
    stored = []
    for engine in ("auto", "reference"):
        codec = ConditionalCodec((ZstdCodec(level=3), Crc32cCodec()), 8, policy)
        with tessarr.config.set({"engine": engine}):
            z = tessarr.create_array(
                str(tmp_path / engine), shape=(16, 16), chunks=(8, 16), dtype="u2", compressors=[codec]
            )
            z[...] = values
            assert z.engine.name == ("native" if engine == "auto" and policy != "never" else "reference")
            assert (tessarr.open_array(str(tmp_path / engine))[3:12, 2:9] == values[3:12, 2:9]).all()
        stored.append([(tmp_path / engine / "c" / str(i) / "0").read_bytes() for i in range(2)])
    assert stored[0] == stored[1]
    flags = [chunk[0] for chunk in stored[0]]
    assert flags == {"compress_if_smaller": [3, 0], "always": [3, 3], "never": [0, 0]}[policy]


# -- pad ---------------------------------------------------------------------------------------------------------------

TIFF_HEADER = (
    "SUkqAAgAAAAIAAABAwABAAAAAAEAAAEBAwABAAAAAAEAAAIBAwABAAAAEAAAAAMBAwABAAAAAQAAAAYBAwABAAAAAQAAABEBBAABAAAAbgAAABYBAwAB"
    "AAAAAAEAABcBBAABAAAAAAACAAAAAAA="
)
"""The padding of the proposal's first example: 256 × 256 uint16, little-endian, one strip."""


@pytest.mark.spec("REG-18")
def test_the_padding_of_the_proposal_makes_chunks_tiff_files() -> None:
    image = pytest.importorskip("PIL.Image")
    values: dict[str, bytes] = {}
    pad = {"name": "pad", "configuration": {"location": "start", "nbytes": 110, "padding": TIFF_HEADER}}
    z = tessarr.create_array(values, shape=(256, 256), chunks=(256, 256), dtype="<u2", compressors=[pad])
    pixels = (np.arange(1 << 16, dtype="u2")).reshape(256, 256)
    z[...] = pixels
    assert (np.asarray(image.open(io.BytesIO(values["c/0/0"]))) == pixels).all()
    values["c/0/0"] = bytes(110) + values["c/0/0"][110:]
    assert (tessarr.open_array(values)[...] == pixels).all()
    assert z.metadata.to_dict()["codecs"][-1] == pad  # type: ignore[index]


@pytest.mark.parametrize(
    "configuration",
    [
        {}, {"location": "start"}, {"nbytes": 4}, {"location": "middle", "nbytes": 4}, {"location": "end", "nbytes": -1},
        {"location": "end", "nbytes": 1 << 40}, {"location": "end", "nbytes": 4, "padding": "AAA="},
        {"location": "end", "nbytes": 4, "padding": "*"}, {"location": "end", "nbytes": 4, "padding": 4},
    ],
)  # fmt: skip
def test_another_padding_is_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        PadCodec.from_json(configuration)


# -- lzw, lz4java --------------------------------------------------------------------------------------------------------


@RUST
@pytest.mark.spec("REG-16")
@pytest.mark.parametrize("size", [0, 1, 2, 255, 5000, 100_000])
def test_lzw_gives_back_what_went_in(size: int) -> None:
    plain = (np.random.default_rng(2).integers(0, 7, size, dtype="u1")).tobytes()
    encoded = data(LzwCodec().encode(plain))
    assert data(LzwCodec().decode(encoded, size)) == plain
    for wrong in (size + 1, max(0, size - 1)):
        if wrong != size:
            with pytest.raises(CodecError):
                LzwCodec().decode(encoded, wrong)
    for cut in range(0, len(encoded), max(1, len(encoded) // 20)):
        try:
            assert data(LzwCodec().decode(encoded[:cut], size)) == plain
        except CodecError:
            continue


@NATIVE
@pytest.mark.spec("N5-04")
@pytest.mark.usefixtures("without_rust")
def test_lz4_java_blocks_that_lie_are_errors(native: bool) -> None:
    codec = Lz4JavaCodec()
    plain = bytes(range(200)) * 40
    encoded = bytearray(data(codec.encode(plain)))
    changed = bytearray(encoded)
    changed[17] ^= 1
    with pytest.raises(ChecksumError):
        codec.decode(bytes(changed), len(plain))
    huge = bytearray(encoded)
    huge[13:17] = b"\xff\xff\xff\x7f"
    for wrong in (bytes(huge), bytes(encoded[:-1]), bytes(encoded) + b"x", b"LZ4Blick" + bytes(encoded[8:]), b""):
        tracemalloc.start()
        with pytest.raises(CodecError):
            codec.decode(wrong, len(plain))
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
        tracemalloc.stop()


# -- singleton_dim -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REG-17")
def test_operations_are_done_one_after_another() -> None:
    codec = SingletonDimCodec.from_json({"operations": [{"insert": 0}, {"remove": 3}]})
    spec = spec_of("int16", (4, 5, 1))
    assert codec.encoded_spec(spec).shape == (1, 4, 5)
    assert codec.to_json()["configuration"] == {"operations": [{"insert": 0}, {"remove": 3}]}
    chunk = numbers("int16", (4, 5, 1))
    assert (codec.decode(codec.encode(chunk, spec), spec) == chunk).all()
    for shape in ((4, 5, 2), (4, 5)):
        with pytest.raises(CodecError):
            codec.encoded_spec(spec_of("int16", shape))
    with pytest.raises(CodecError):
        SingletonDimCodec((("insert", 3),)).encoded_spec(spec_of("int16", (4, 5)))


@pytest.mark.parametrize(
    "operations", [None, 5, [5], [{}], [{"insert": -1}], [{"insert": 1.0}], [{"add": 1}], [{"insert": 0, "remove": 0}],
                   [{"insert": 99}], [{"insert": 0}] * 500]
)  # fmt: skip
def test_other_operations_are_refused(operations: Any) -> None:
    with pytest.raises(MetadataValidationError):
        SingletonDimCodec.from_json({"operations": operations})


@RUST
def test_the_native_engine_serves_axes_of_length_one(tmp_path: Path) -> None:
    z = tessarr.create_array(
        str(tmp_path), shape=(6, 8), chunks=(3, 8), dtype="f4",
        filters=[SingletonDimCodec((("insert", 1), ("insert", 0)))], serializer=ZfpCodec(), compressors=None,
    )  # fmt: skip
    z[...] = np.arange(48).reshape(6, 8)
    assert z.engine.name == "native"
    with tessarr.config.set({"engine": "reference"}):
        assert (tessarr.open_array(str(tmp_path))[...] == np.arange(48).reshape(6, 8)).all()


# -- N5 ------------------------------------------------------------------------------------------------------------------


def n5(*more: Any, ndim: int = 2) -> N5DefaultCodec:
    return N5DefaultCodec((TransposeCodec(tuple(reversed(range(ndim)))), BytesCodec("big"), *more))


@NATIVE
@pytest.mark.spec("N5-03", "REG-20")
@pytest.mark.usefixtures("without_rust")
def test_a_block_header_that_lies_is_an_error_before_memory_is_taken(native: bool) -> None:
    huge = (1 << 16) - 1
    body = data(GzipCodec(level=1).encode(bytes(6)))
    cases: list[tuple[ArrayToBytes, bytes]] = [
        (n5(), b""),
        (n5(), b"\0\0\0"),
        (n5(), struct.pack(">HHI", 0, 2, 3)),
        (n5(), struct.pack(">HHII", 1, 2, 3, 2) + bytes(12)),
        (n5(), struct.pack(">HHIII", 0, 3, 3, 2, 1) + bytes(12)),
        (n5(), struct.pack(">HHII", 0, 2, 3, 2) + bytes(11)),
        (n5(), struct.pack(">HHII", 0, 2, 3, 3) + bytes(12)),
        (n5(), struct.pack(">HHII", 0, 2, huge, huge) + bytes(12)),
        (n5(GzipCodec(level=1)), struct.pack(">HHII", 0, 2, huge, huge) + body),
        (n5(GzipCodec(level=1)), struct.pack(">HHII", 0, 2, 3, 7) + body),
        (N5VarlenCodec((BytesCodec("big"),)), struct.pack(">HHII", 1, 2, 3, 2) + b"\0\0"),
        (N5VarlenCodec((BytesCodec("big"),)), struct.pack(">HHIII", 1, 2, 3, 2, 13) + bytes(12)),
        (N5VarlenCodec((BytesCodec("big"),)), struct.pack(">HHIII", 0, 2, 3, 2, 12) + bytes(12)),
        (N5VarlenCodec((BytesCodec("big"),)), struct.pack(">HHIII", 1, 2, huge, huge, 12) + bytes(12)),
    ]
    for codec, stored in cases:
        tracemalloc.start()
        with pytest.raises(CodecError):
            codec.decode(stored, spec_of("int16", (3, 2)))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()
        if native and isinstance(codec, N5DefaultCodec):
            values: dict[str, bytes] = {}
            tessarr.create_array(values, shape=(3, 2), chunks=(3, 2), dtype="i2", serializer=codec, compressors=None)
            values["c/0/0"] = stored
            z = tessarr.open_array(values)
            assert z.engine.name == "native"
            with pytest.raises(CodecError):
                z[...]


@pytest.mark.parametrize(
    "codecs",
    [
        [], ["bytes"], ["crc32c"], [{"name": "transpose", "configuration": {"order": [0]}}],
        [{"name": "transpose", "configuration": {"order": [0]}}, "bytes", "crc32c", "crc32c"],
    ],
)  # fmt: skip
def test_other_codecs_within_n5_default_are_refused(codecs: Any) -> None:
    with pytest.raises(MetadataValidationError):
        N5DefaultCodec.from_json({"codecs": codecs})


@pytest.mark.parametrize(
    ("codec", "data_type", "shape"),
    [
        (n5(ndim=3), "int16", (2, 3)),
        (n5(), "float16", (2, 3)),
        (n5(), "complex64", (2, 3)),
        (n5(), "bool", (2, 3)),
        (N5DefaultCodec((TransposeCodec((0, 1)), BytesCodec("big"))), "int16", (2, 3)),
        (N5DefaultCodec((TransposeCodec((1, 0)), BytesCodec("little"))), "int16", (2, 3)),
    ],
)
def test_chunks_that_n5_cannot_hold_are_refused(codec: N5DefaultCodec, data_type: str, shape: Any) -> None:
    with pytest.raises(CodecError):
        codec.encoded_size(spec_of(data_type, shape))


@NATIVE
@pytest.mark.spec("N5-05")
@pytest.mark.usefixtures("without_rust")
def test_the_number_in_a_varlength_header_is_that_before_compression(native: bool) -> None:
    codec = N5VarlenCodec((BytesCodec("big"), GzipCodec(level=1)))
    spec = spec_of("int32", (3, 5))
    chunk = numbers("int32", (3, 5))
    stored = data(codec.encode(chunk, spec))
    assert struct.unpack(">HHIII", stored[:16]) == (1, 2, 3, 5, 60)
    assert (codec.decode(stored, spec) == chunk).all()
    earlier = stored[:12] + struct.pack(">I", len(stored) - 16) + stored[16:]
    assert (codec.decode(earlier, spec) == chunk).all()
    texts = N5VarlenCodec((VLenUTF8Codec(),))
    spec = spec_of("string", (2, 2))
    words = np.array([["a", ""], ["日本", "x" * 300]], spec.dtype)
    assert (texts.decode(texts.encode(words, spec), spec) == words).all()


# -- names of others -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("REG-19")
@pytest.mark.parametrize(
    ("name", "configuration", "known"),
    [
        ("zarrs.squeeze", {}, "zarrs.squeeze"),
        ("https://codec.zarrs.dev/array_to_array/squeeze", {}, "zarrs.squeeze"),
        ("zarrs.zfp", {"mode": "reversible"}, "zfp"),
        ("https://codec.zarrs.dev/array_to_bytes/zfp", {"mode": "reversible"}, "zfp"),
        ("https://codec.zarrs.dev/array_to_bytes/zfpy", {"mode": 4, "tolerance": 0.1}, "numcodecs.zfpy"),
        ("https://codec.zarrs.dev/array_to_bytes/pcodec", {}, "numcodecs.pcodec"),
        ("https://codec.zarrs.dev/array_to_bytes/bitround", {"keepbits": 3}, "bitround"),
        ("https://codec.zarrs.dev/array_to_array/bitround", {"keepbits": 3}, "bitround"),
        ("https://codec.zarrs.dev/array_to_bytes/vlen_utf8", {}, "vlen-utf8"),
        ("https://codec.zarrs.dev/array_to_bytes/vlen_bytes", {}, "vlen-bytes"),
        ("https://codec.zarrs.dev/bytes_to_bytes/bz2", {"level": 5}, "numcodecs.bz2"),
        ("https://codec.zarrs.dev/bytes_to_bytes/zlib", {"level": 5}, "numcodecs.zlib"),
        ("https://codec.zarrs.dev/bytes_to_bytes/shuffle", {"elementsize": 4}, "numcodecs.shuffle"),
        ("https://codec.zarrs.dev/bytes_to_bytes/fletcher32", {}, "numcodecs.fletcher32"),
    ],
)
def test_names_of_zarrs_are_read(name: str, configuration: dict[str, Any], known: str) -> None:
    assert codec_from({"name": name, "configuration": configuration}).name == known


@pytest.mark.spec("REG-13")
@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"id": "imagecodecs_zlib", "level": None}, False),
        ({"id": "imagecodecs_blosc", "level": None, "compressor": 5, "shuffle": 2, "typesize": None, "blocksize": None,
          "numthreads": None}, False),
        ({"id": "imagecodecs_deflate", "raw": True}, True),
        ({"id": "imagecodecs_zstd", "level": "high"}, True),
        ({"id": "imagecodecs_lz4", "turbo": 1}, True),
    ],
)  # fmt: skip
def test_ids_of_imagecodecs_are_read_in_v2(config: dict[str, Any], wrong: bool) -> None:
    values: dict[str, bytes] = {}
    if wrong:
        with pytest.raises(TessarrError):
            tessarr.create_array(values, shape=(8,), dtype="i4", zarr_format=2, compressors=config)
        return
    z = tessarr.create_array(values, shape=(8,), dtype="i4", zarr_format=2, compressors=config)
    z[...] = np.arange(8)
    assert (tessarr.open_array(values)[...] == np.arange(8)).all()
