"""The ``numcodecs.<id>`` names of v3."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessarr import codecs, registry
from tessarr.codecs import numcodecs
from tessarr.codecs.base import ArrayToArray
from tessarr.codecs.numcodecs.v3 import CLASSES, NumcodecsCodec
from tessarr.codecs.parse import codec_from
from tessarr.errors import CodecError, MetadataValidationError
from tests.codecs.samples import data, numbers, spec_of


def test_every_name_is_registered_for_its_class_and_exported() -> None:
    for codec_id, cls in CLASSES.items():
        assert registry.get("codec", f"numcodecs.{codec_id}") is cls
        assert getattr(numcodecs, cls.__name__) is cls
        assert cls.name == f"numcodecs.{codec_id}"
    assert {name for name in numcodecs.__all__ if isinstance(getattr(numcodecs, name), type)} >= {
        cls.__name__ for cls in CLASSES.values()
    }


def test_all_the_names_of_zarr_python_are_there() -> None:
    theirs = """bz2 crc32 crc32c lz4 lzma zfpy adler32 astype bitround blosc delta fixedscaleoffset fletcher32 gzip
    jenkins_lookup3 packbits pcodec quantize shuffle zlib zstd"""
    assert set(theirs.split()) <= set(CLASSES)


def test_the_package_exports_lazily_and_says_what_it_has() -> None:
    assert set(codecs.__all__) <= set(dir(codecs))
    for name in codecs.__all__:
        assert getattr(codecs, name) is not None
    with pytest.raises(AttributeError, match="NoSuchCodec"):
        codecs.NoSuchCodec  # noqa: B018


def test_the_id_is_not_written_and_may_be_read() -> None:
    codec = numcodecs.Zlib.from_json({"id": "zlib", "level": 5})
    assert codec.to_json() == {"name": "numcodecs.zlib", "configuration": {"level": 5}}
    with pytest.raises(MetadataValidationError):
        numcodecs.Zlib.from_json({"id": "bz2"})


@pytest.mark.parametrize(
    ("codec", "data_type", "configuration"),
    [
        (numcodecs.Delta(), "int32", {"dtype": "<i4"}),
        (numcodecs.Quantize(digits=3), "float32", {"digits": 3, "dtype": "<f4"}),
        (numcodecs.AsType(encode_dtype="<f4"), "float64", {"encode_dtype": "<f4", "decode_dtype": "<f8"}),
        (numcodecs.Shuffle(), "int16", {"elementsize": 2}),
        (numcodecs.Zlib(level=2), "int16", {"level": 2}),
    ],
)
def test_what_follows_from_the_elements_is_filled_in(
    codec: ArrayToArray, data_type: str, configuration: dict[str, Any]
) -> None:
    assert codec.fit(spec_of(data_type, (3,))).to_json()["configuration"] == configuration


def test_dtypes_may_be_type_strings_v3_names_or_numpy_dtypes() -> None:
    spec = spec_of("int32", (4,))
    chunk = numbers("int32", (4,))
    stored = [
        data(numcodecs.Delta(dtype=dtype, astype=astype).encode(chunk, spec))
        for dtype, astype in (("<i4", "<i2"), ("int32", "int16"), (np.dtype("i4"), np.dtype("i2")))
    ]
    assert stored[0] == stored[1] == stored[2]
    for dtype in ("O", "|O", "object", "U5", "S3", "V4", "os", "(1000000,)f8", 3):
        with pytest.raises(MetadataValidationError):
            numcodecs.Delta(dtype=dtype)


def test_a_filter_for_other_elements_is_refused_when_the_chain_is_bound() -> None:
    for codec, data_type in (
        (numcodecs.Delta(dtype="<i4"), "float32"),
        (numcodecs.PackBits(), "uint8"),
        (numcodecs.BitRound(keepbits=3), "int32"),
    ):
        with pytest.raises(CodecError):
            codec.encoded_spec(spec_of(data_type, (3,)))
    for last, data_type in ((numcodecs.PCodec(), "int8"), (numcodecs.ZFPY(), "int16"), (numcodecs.PCodec(), "string")):
        with pytest.raises(CodecError):
            last.encoded_size(spec_of(data_type, (3,)))


def test_packbits_puts_the_first_element_in_the_highest_bit_after_the_padding() -> None:
    chunk = np.array([True, *[False] * 8, True])
    spec = spec_of("bool", (10,))
    encoded = numcodecs.PackBits().encode(chunk, spec)
    assert encoded.tolist() == [6, 0b10000000, 0b01000000]
    assert numcodecs.PackBits().encoded_spec(spec).shape == (3,)
    assert numcodecs.PackBits().decode(encoded, spec).tolist() == chunk.tolist()
    with pytest.raises(CodecError):
        numcodecs.PackBits().decode(np.array([7, 128, 64], np.uint8), spec)


def test_a_configuration_in_big_endian_is_decoded_to_the_chunks_values() -> None:
    spec, chunk = spec_of("int32", (2, 3)), numbers("int32", (2, 3))
    codec = numcodecs.Delta(dtype=">i4", astype=">i2")
    encoded = codec.encode(chunk, spec)
    assert codec.encoded_spec(spec).dtype == np.dtype("=i2")
    assert codec.decode(encoded.astype("=i2"), spec).tolist() == chunk.tolist()


def test_numbers_are_not_taken_for_those_of_another_type() -> None:
    codec = numcodecs.PCodec()
    stored = codec.encode(numbers("float32", (8,)), spec_of("float32", (8,)))
    with pytest.raises(CodecError):
        codec.decode(stored, spec_of("int32", (8,)))
    zfp = numcodecs.ZFPY(mode=4, tolerance=0.1)
    stored = zfp.encode(numbers("float32", (8,)), spec_of("float32", (8,)))
    with pytest.raises(CodecError):
        zfp.decode(stored, spec_of("int32", (8,)))


def test_codecs_are_equal_by_what_they_do() -> None:
    assert numcodecs.Zlib() == numcodecs.Zlib(level=1) != numcodecs.Zlib(level=2)
    assert numcodecs.Zlib(level=1) != numcodecs.GZip(level=1)
    assert len({numcodecs.Zlib(), numcodecs.Zlib(level=1), numcodecs.Zlib(level=2)}) == 2
    made = codec_from({"name": "numcodecs.lz4"})
    assert isinstance(made, NumcodecsCodec)
    assert repr(numcodecs.Zlib(level=2)) == "Zlib(level=2)"
