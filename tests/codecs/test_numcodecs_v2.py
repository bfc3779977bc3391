"""Filters and compressors of Zarr v2."""

from __future__ import annotations

import copy
import json
import pickle
import struct
from typing import Any

import numcodecs
import numpy as np
import pytest

import tessarr
from tessarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, VLenUTF8Codec, ZstdCodec
from tessarr.codecs.base import ArrayToBytes, BytesToBytes, ChunkSpec
from tessarr.codecs.numcodecs import UnknownV2Codec, V2Codec, as_codec, v2_compressor, v2_config, v2_filters
from tessarr.codecs.parse import codec_from
from tessarr.dtypes.base import DataType
from tessarr.dtypes.parse import from_numpy
from tessarr.errors import (
    CodecError,
    MetadataValidationError,
    MissingDependencyError,
    PickleCodecDisabledError,
    UnknownCodecError,
)
from tests.codecs.samples import data, v2_of
from tests.narrow import calls

FLOATS = from_numpy("<f4")


def objects(codec_id: str) -> ChunkSpec:
    data_type = from_numpy(object, object_codec=codec_id)
    return ChunkSpec((3,), data_type, data_type.default_fill())


def object_codec(configs: list[dict[str, Any]], data_type: DataType) -> ArrayToBytes:
    """The object codec, which must be the first filter."""
    found, _ = v2_filters(configs, data_type)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "codec",
    [
        numcodecs.Blosc(),
        numcodecs.Blosc("zstd", 3, -1, 256),
        numcodecs.Zstd(3, checksum=True),
        numcodecs.GZip(2),
        numcodecs.Zlib(),
        numcodecs.BZ2(),
        numcodecs.LZMA(),
        numcodecs.LZ4(),
        numcodecs.CRC32(),
        numcodecs.CRC32("end"),
        numcodecs.CRC32C(),
        numcodecs.Adler32(),
        numcodecs.Fletcher32(),
        numcodecs.Shuffle(8),
        numcodecs.Base64(),
        numcodecs.PackBits(),
        numcodecs.Delta("<i4", "<i2"),
        numcodecs.Delta("i4"),
        numcodecs.FixedScaleOffset(1.5, 10, "<f8", "u1"),
        numcodecs.Quantize(3, "f4"),
        numcodecs.AsType("<f4", "<f8"),
        numcodecs.BitRound(3),
    ],
    ids=repr,
)
def test_objects_of_numcodecs_are_taken_and_their_configuration_is_written(codec: Any) -> None:
    made = as_codec(codec, zarr_format=2)
    assert isinstance(made, BytesToBytes)
    assert v2_of(made) == codec.get_config()
    assert v2_config(dict(codec.get_config())) == codec.get_config()
    assert json.loads(json.dumps(v2_of(made))) == v2_of(made)
    assert pickle.loads(pickle.dumps(made)) == made == copy.copy(made)


def test_a_zstd_checksum_is_written_only_when_it_is_there() -> None:
    assert v2_config(numcodecs.Zstd(3)) == v2_config({"id": "zstd", "level": 3}) == {"id": "zstd", "level": 3}
    assert v2_of(v2_compressor({"id": "zstd", "level": 3, "checksum": False}))["checksum"] is False


def test_a_configuration_is_completed_for_writing_and_kept_as_it_was_when_read() -> None:
    assert v2_config({"id": "zlib"}) == {"id": "zlib", "level": 1}
    assert v2_of(v2_compressor({"id": "zlib"})) == {"id": "zlib"}
    short = {"id": "delta", "dtype": "<i4"}
    assert v2_of(v2_compressor(short)) == short


@pytest.mark.spec("UPG-06")
def test_for_v3_they_become_the_codecs_of_the_specification_where_the_bytes_are_the_same() -> None:
    assert as_codec(numcodecs.GZip(2)) == GzipCodec(level=2)
    assert as_codec(numcodecs.Zstd(2, checksum=True)) == ZstdCodec(level=2, checksum=True)
    assert as_codec(numcodecs.Blosc("lz4", 3, 2)) == BloscCodec(None, "lz4", 3, "bitshuffle")
    open_shuffle = as_codec(numcodecs.Blosc("lz4", 3, -1))
    assert isinstance(open_shuffle, BloscCodec)
    assert open_shuffle.shuffle is None
    assert as_codec({"id": "crc32c"}) == Crc32cCodec()
    assert as_codec({"id": "crc32c", "location": "start"}).name == "numcodecs.crc32c"
    assert as_codec({"id": "vlen-utf8"}) == VLenUTF8Codec()
    assert codec_from(numcodecs.Zlib(4)).to_json() == {"name": "numcodecs.zlib", "configuration": {"level": 4}}


@pytest.mark.spec("V2-45")
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<i2", "|u1", "<M8[s]"])
@pytest.mark.parametrize("shuffle", [-1, 0, 1, 2])
def test_blosc_takes_the_stride_from_the_elements_as_numcodecs_does(dtype: str, shuffle: int) -> None:
    array = np.arange(2000).astype(dtype)
    ours = v2_compressor({"id": "blosc", "shuffle": shuffle}).encode(array)
    assert data(ours) == numcodecs.Blosc(shuffle=shuffle).encode(array)


@pytest.mark.spec("V2-46")
def test_lz4_has_a_size_in_front() -> None:
    encoded = data(v2_compressor({"id": "lz4"}).encode(b"x" * 100))
    assert struct.unpack("<i", encoded[:4]) == (100,)
    for size in (-1, -100, 0, 99, 101, 2**31 - 1):
        with pytest.raises(CodecError):
            v2_compressor({"id": "lz4"}).decode(struct.pack("<i", size) + encoded[4:], 100)
        with pytest.raises(CodecError):
            v2_compressor({"id": "lz4"}).decode(struct.pack("<i", size) + encoded[4:], None)


@pytest.mark.spec("V2-15")
def test_the_example_of_the_specification_is_delta_then_blosc() -> None:
    none, filters = v2_filters([{"id": "delta", "dtype": "<f8", "astype": "<f4"}], from_numpy("<f8"))
    assert none is None
    compressor = v2_compressor({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1})
    array = np.arange(100, dtype="<f8").reshape(10, 10)
    stored = compressor.encode(filters[0].encode(array))
    by_hand = numcodecs.Delta("<f8", "<f4").decode(numcodecs.Blosc().decode(stored))
    assert by_hand.tolist() == array.ravel().tolist()
    sizes = [800, filters[0].encoded_size(800)]
    assert sizes[1] == 400
    decoded = filters[0].decode(compressor.decode(stored, sizes[1]), sizes[0])
    assert data(decoded) == array.tobytes()


def test_filters_that_compute_need_not_know_the_shape() -> None:
    _, (scale, bits) = v2_filters(
        [
            {"id": "fixedscaleoffset", "scale": 10, "offset": 0, "dtype": "<f4", "astype": "<f4"},
            {"id": "bitround", "keepbits": 23},
        ],
        FLOATS,
    )
    array = np.arange(6, dtype="<f4").reshape(2, 3)
    stored = bits.encode(scale.encode(array))
    assert (
        np.frombuffer(data(scale.decode(bits.decode(data(stored), 24), 24)), "<f4").tolist() == array.ravel().tolist()
    )


class TestWhatCannotBeUsed:
    @pytest.mark.spec("V2-08", "V2-09")
    @pytest.mark.parametrize("config", [{}, {"level": 1}, {"id": None}, {"id": 3}])
    def test_a_configuration_without_id_is_refused(self, config: dict[str, Any]) -> None:
        with pytest.raises(MetadataValidationError, match="id"):
            v2_compressor(config)
        with pytest.raises(MetadataValidationError, match="id"):
            v2_filters([config], FLOATS)

    @pytest.mark.spec("V2-08")
    @pytest.mark.parametrize(
        ("config", "says"),
        [
            ({"id": "nonesuch"}, "nonesuch"),
            ({"id": "imagecodecs_jpeg2k", "level": 3}, "imagecodecs"),
            ({"id": "zlib", "turbo": 9}, "turbo"),
            ({"id": "blosc", "cname": "brotli"}, "brotli"),
            ({"id": "delta"}, "dtype"),
            ({"id": "delta", "dtype": "|O"}, "type string"),
            ({"id": "delta", "dtype": "os.system"}, "type string"),
            ({"id": "vlen-utf8"}, "objects"),
        ],
    )
    def test_other_trouble_waits_for_the_first_chunk(self, config: dict[str, Any], says: str) -> None:
        codec = v2_compressor(config)
        assert v2_of(codec) == config
        if isinstance(codec, UnknownV2Codec):
            assert pickle.loads(pickle.dumps(codec)).to_v2() == config
            sized: BytesToBytes = codec
            assert sized.encoded_size(10) is None
        error = UnknownCodecError if isinstance(codec, UnknownV2Codec) else CodecError
        for use in calls(lambda: codec.decode(b"12345678", 8), lambda: codec.encode(b"12345678")):
            with pytest.raises(error, match=says):
                use()

    @pytest.mark.parametrize("codec_id", ["pickle", "Pickle", "pickle2", "dill"])
    def test_pickle_is_refused_at_every_position_before_anything_is_made(self, codec_id: str) -> None:
        bad: dict[str, Any] = {"id": codec_id, "protocol": 5}
        for filters in ([bad], [{"id": "zlib"}, bad], [bad, {"id": "zlib"}], [{"id": "vlen-utf8"}, bad]):
            for data_type in (FLOATS, from_numpy(str)):
                with pytest.raises(PickleCodecDisabledError):
                    v2_filters(filters, data_type)
        for use in (v2_compressor, v2_config, as_codec, lambda config: as_codec(config, zarr_format=2)):
            with pytest.raises(PickleCodecDisabledError):
                use(bad)

    def test_pickle_is_refused_as_an_object_and_as_a_v3_name(self) -> None:
        for zarr_format in (2, 3):
            with pytest.raises(PickleCodecDisabledError):
                as_codec(numcodecs.Pickle(), zarr_format=zarr_format)
        for value in ("numcodecs.pickle", {"name": "numcodecs.pickle", "configuration": {"protocol": 5}}):
            with pytest.raises(PickleCodecDisabledError):
                codec_from(value)

    def test_a_codec_that_somebody_registered_is_used_and_its_size_checked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Doubler(numcodecs.abc.Codec):  # type: ignore[misc]  # numcodecs has no types
            codec_id = "test-doubler"

            def encode(self, buf: Any) -> bytes:
                return bytes(buf) * 2

            def decode(self, buf: Any, out: Any = None) -> bytes:
                return bytes(buf)[: len(bytes(buf)) // 2]

        monkeypatch.setitem(numcodecs.registry.codec_registry, "test-doubler", Doubler)
        codec = v2_compressor({"id": "test-doubler"})
        assert isinstance(codec, V2Codec)
        assert data(codec.decode(codec.encode(b"abcd"), 4)) == b"abcd"
        with pytest.raises(CodecError):
            codec.decode(b"abcdabcd", 5)


@pytest.mark.parametrize("nbytes", [10**12 * 4, 2**63, 4 * 10**30])
@pytest.mark.parametrize("config", ["zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "blosc", "pcodec"])
def test_a_chunk_said_to_be_larger_than_any_memory_is_an_error(config: str, nbytes: int) -> None:
    codec = v2_compressor({"id": config})
    stored = data(numcodecs.get_codec({"id": config}).encode(np.arange(100, dtype="f4")))
    assert len(codec.decode(stored, 400)) == 400
    with pytest.raises(CodecError):
        codec.decode(stored, nbytes)


@pytest.mark.spec("V2-29")
class TestObjects:
    CONFIGS: tuple[dict[str, Any], ...] = (
        {"id": "json2"},
        {"id": "msgpack2"},
        {"id": "vlen-utf8"},
        {"id": "categorize", "labels": ["a", "ž"], "dtype": "|O", "astype": "|u1"},
    )

    @pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config["id"])
    def test_text_comes_back_and_numcodecs_reads_it(self, config: dict[str, Any]) -> None:
        spec = objects(config["id"])
        codec, rest = v2_filters([config, {"id": "zlib"}], spec.data_type)
        assert isinstance(codec, ArrayToBytes)
        assert len(rest) == 1
        chunk = np.array(["a", "ž", ""], spec.dtype)
        stored = data(codec.encode(chunk, spec))
        assert codec.decode(stored, spec).tolist() == ["a", "ž", ""]
        assert numcodecs.get_codec(dict(config)).decode(stored).tolist() == ["a", "ž", ""]
        assert v2_of(codec) == config
        assert pickle.loads(pickle.dumps(codec)) == codec

    @pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config["id"])
    def test_every_prefix_is_an_error(self, config: dict[str, Any]) -> None:
        spec = objects(config["id"])
        codec = object_codec([config], spec.data_type)
        stored = data(codec.encode(np.array(["a", "ž", ""], spec.dtype), spec))
        for cut in range(len(stored)):
            with pytest.raises(CodecError):
                codec.decode(stored[:cut], spec)
        with pytest.raises(CodecError):
            codec.decode(stored + b"\x01", spec)

    def test_ragged_arrays_come_back(self) -> None:
        data_type = from_numpy(object, object_codec="vlen-array:<i2")
        spec = ChunkSpec((3,), data_type, data_type.default_fill())
        codec = object_codec([{"id": "vlen-array", "dtype": "<i2"}], data_type)
        chunk = np.empty(3, object)
        chunk[:] = [np.array(row, "<i2") for row in ([1, 2], [], [3])]
        stored = data(codec.encode(chunk, spec))
        assert [row.tolist() for row in codec.decode(stored, spec)] == [[1, 2], [], [3]]
        for cut in range(len(stored)):
            with pytest.raises(CodecError):
                codec.decode(stored[:cut], spec)

    def test_two_dimensional_json_comes_back(self) -> None:
        data_type = from_numpy(object, object_codec="json2")
        spec = ChunkSpec((2, 2), data_type, data_type.default_fill())
        codec = object_codec([{"id": "json2"}], data_type)
        chunk = np.empty((2, 2), object)
        chunk[:] = [[1, {"a": [1, 2]}], [None, "x"]]
        assert codec.decode(codec.encode(chunk, spec), spec).tolist() == chunk.tolist()

    @pytest.mark.parametrize(
        "stored",
        [
            b"[",
            b"{}",
            b"[1]",
            b'["|O",[3]]',
            b'[1,2,3,"|O",[1000000000000]]',
            b'[1,2,3,"|O",[-3]]',
            b'[1,2,3,"|O",["3"]]',
            b'[[1,2,3],"|O",[1,3,1]]',
            b"[" * 100_000,
            b"\xff",
        ],
    )
    def test_hostile_json_is_an_error(self, stored: bytes) -> None:
        codec = object_codec([{"id": "json2"}], objects("json2").data_type)
        with pytest.raises(CodecError):
            codec.decode(stored, objects("json2"))

    @pytest.mark.parametrize(
        "config",
        [
            {"id": "json2", "separators": ["é", ":"]},
            {"id": "json2", "indent": "x"},
            {"id": "msgpack2", "use_bin_type": False},
        ],
        ids=repr,
    )
    def test_what_could_not_be_read_again_is_not_written(self, config: dict[str, Any]) -> None:
        # numcodecs writes it, and whoever reads it gets an error.
        codec = object_codec([config], objects(config["id"]).data_type)
        unreadable = np.array([{"a": 1}, b"\xff", None] if config["id"] == "msgpack2" else [1, 2, 3], object)
        with pytest.raises(CodecError, match="cannot encode a chunk: what it writes by its"):
            codec.encode(unreadable, objects(config["id"]))

    def test_unusual_text_of_json_comes_back(self) -> None:
        config = {"id": "json2", "separators": [" , ", " : "], "indent": 2, "encoding": "utf-16"}
        codec = object_codec([config], objects("json2").data_type)
        chunk = np.array([{"a": [1]}, "ž", None], object)
        assert codec.decode(codec.encode(chunk, objects("json2")), objects("json2")).tolist() == chunk.tolist()

    @pytest.mark.parametrize("encoding", [1, None, ["utf-8"]])
    def test_an_encoding_of_json_that_is_no_text_is_an_error(self, encoding: Any) -> None:
        codec = object_codec([{"id": "json2", "encoding": encoding}], objects("json2").data_type)
        with pytest.raises(MetadataValidationError, match="encoding: must be a string"):
            codec.decode(b'[1,2,3,"|O",[3]]', objects("json2"))

    def test_a_category_that_has_no_label_is_an_error(self) -> None:
        config = self.CONFIGS[-1]
        codec = object_codec([config], objects("categorize").data_type)
        with pytest.raises(CodecError, match="2 labels"):
            codec.decode(b"\0\1\3", objects("categorize"))

    def test_an_object_array_needs_an_object_codec_first(self) -> None:
        data_type = from_numpy(str)
        empty: tuple[None, list[dict[str, Any]]] = (None, [])
        for filters in empty:
            with pytest.raises(MetadataValidationError, match="object codec"):
                v2_filters(filters, data_type)
        codec = object_codec([{"id": "nonesuch"}], data_type)
        with pytest.raises(UnknownCodecError, match="nonesuch"):
            codec.decode(b"", objects("vlen-utf8"))

    def test_a_missing_package_is_named_with_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "msgpack", None)
        codec = object_codec([{"id": "msgpack2"}], objects("msgpack2").data_type)
        with pytest.raises(MissingDependencyError, match=r"tessarr\[msgpack\]"):
            codec.decode(b"\x90", objects("msgpack2"))


@pytest.mark.parametrize(("codec_id", "module"), [("zfpy", "zfpy"), ("pcodec", "pcodec")])
def test_a_missing_compressor_is_named_with_its_extra(
    codec_id: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = v2_compressor({"id": codec_id})
    stored = codec.encode(np.arange(20, dtype="f4"))
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"tessarr\[codecs\]"):
        codec.decode(stored, 80)


def test_a_zfp_header_that_claims_another_shape_is_refused() -> None:
    codec = v2_compressor({"id": "zfpy", "mode": 4, "tolerance": 0.01})
    stored = bytearray(data(codec.encode(np.arange(64, dtype="f4").reshape(8, 8))))
    stored[5] = 0xFF
    with pytest.raises(CodecError, match="wrong size"):
        codec.decode(bytes(stored), 256)
    for wrong in (b"", b"zfp", b"zfq" + bytes(20)):
        with pytest.raises(CodecError):
            codec.decode(wrong, 256)


@pytest.mark.parametrize("mode", [2047, 0xFFF | 0x7FFF << 12], ids=["rate", "all-parameters"])
def test_a_zfp_stream_that_is_shorter_than_its_blocks_is_refused(mode: int) -> None:
    # The library skips what a block need not take, and read the memory behind the stream: values differed from read to read.
    codec = v2_compressor({"id": "zfpy", "mode": 2, "rate": 8})
    stored = data(codec.encode(np.arange(4096, dtype="f4").reshape(64, 64)))
    assert len(codec.decode(stored, 4096 * 4)) == 4096 * 4
    bits = 64 if mode >> 12 else 12
    word = int.from_bytes(stored, "little") & ~((1 << bits) - 1 << 84) | mode << 84
    with pytest.raises(CodecError, match=r"fewer than 256 blocks of \d+ bits take"):
        codec.decode(word.to_bytes(len(stored), "little"), 4096 * 4)


@pytest.mark.parametrize("rate", [4, 8, 16, 32])
def test_zfp_streams_of_a_fixed_rate_are_read_as_by_the_library(rate: int) -> None:
    zfpy = pytest.importorskip("zfpy", reason="the package is part of the extra codecs")
    for shape in ((3,), (64,), (5, 9), (4, 4, 5), (2, 3, 4, 5)):
        for dtype in ("f4", "f8", "i4", "i8"):
            codec = v2_compressor({"id": "zfpy", "mode": 2, "rate": rate})
            chunk = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
            stored = data(codec.encode(chunk))
            assert data(codec.decode(stored, chunk.nbytes)) == zfpy.decompress_numpy(stored).tobytes()


def test_a_block_size_that_no_c_integer_holds_is_that_of_one_block() -> None:
    config: dict[str, Any] = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}
    chunk = np.arange(100, dtype="i4")
    codec, whole = (v2_compressor({**config, "blocksize": size}) for size in (2**64 - 1, chunk.nbytes))
    assert data(codec.encode(chunk)) == data(whole.encode(chunk))
    assert data(codec.decode(codec.encode(chunk), 400)) == chunk.tobytes()


def test_an_lzma_preset_that_no_c_integer_holds_is_an_error() -> None:
    with pytest.raises(CodecError, match="lzma cannot compress"):
        v2_compressor({"id": "lzma", "format": 1, "preset": 10**30}).encode(np.arange(100, dtype="i4"))


def test_an_lzma_stream_may_not_ask_for_any_amount_of_memory() -> None:
    import lzma

    huge = lzma.compress(b"abc", lzma.FORMAT_ALONE, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16}])
    stored = huge[:1] + struct.pack("<I", 0xFFFFFFFF) + huge[5:]
    with pytest.raises(CodecError, match="corrupt"):
        v2_compressor({"id": "lzma", "format": 2}).decode(stored, 3)


@pytest.mark.parametrize(
    ("config", "error"),
    [({"id": "éé"}, UnknownCodecError), ({"id": "zlib", "x": 1}, MetadataValidationError)],
)
def test_an_array_of_an_unusable_codec_opens_and_its_properties_raise_typed_errors(
    config: dict[str, Any], error: type[Exception]
) -> None:
    document = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": 0, "order": "C"}
    for name, other in (("compressor", "filters"), ("filters", "compressor")):
        members = {"compressor": None, "filters": None, name: config if name == "compressor" else [config]}
        array = tessarr.open_array({".zarray": json.dumps({**document, **members}).encode()}, mode="r")
        with pytest.raises(error):
            getattr(array, name)
        assert not getattr(array, other)
