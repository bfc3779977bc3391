from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from tessarr.codecs import PackBitsCodec
from tessarr.errors import CodecError, MetadataValidationError
from tessarr.types import JSON
from tests.codecs.samples import data, spec_of

TYPES = {
    "bool": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6,
    "complex_float4_e2m1fn": 8, "complex_float6_e3m2fn": 12, "int8": 8, "uint16": 16, "int64": 64, "float32": 32,
    "bfloat16": 16, "complex64": 64,
}  # fmt: skip


def chunk_of(data_type: str, count: int) -> np.ndarray:
    """Elements of random bits, the unused upper bits of a byte 0."""
    spec = spec_of(data_type, (count,))
    raw = np.random.default_rng(0).integers(0, 256, count * spec.dtype.itemsize, np.uint8)
    parts = 2 if data_type.startswith("complex") else 1
    bits = TYPES[data_type] // parts
    if bits < 8:
        raw &= (1 << bits) - 1
    return raw.view(spec.dtype)


@pytest.mark.parametrize("padding", ["none", "first_byte", "last_byte"])
@pytest.mark.parametrize("data_type", TYPES)
def test_elements_come_back_in_the_size_promised(
    data_type: str, padding: Literal["none", "first_byte", "last_byte"]
) -> None:
    chunk, codec = chunk_of(data_type, 15), PackBitsCodec(padding)
    spec = spec_of(data_type, (15,))
    encoded = data(codec.encode(chunk, spec))
    assert len(encoded) == codec.encoded_size(spec) == -(-15 * TYPES[data_type] // 8) + (padding != "none")
    decoded = codec.decode(encoded, spec)
    if data_type in ("int2", "int4"):
        assert decoded.tolist() == chunk.tolist()
    else:
        assert decoded.tobytes() == chunk.tobytes()


def test_the_first_element_is_the_lowest_bit() -> None:
    chunk = np.array([True, *[False] * 8, True])
    assert data(PackBitsCodec().encode(chunk, spec_of("bool", (10,)))) == b"\x01\x02"
    assert data(PackBitsCodec("first_byte").encode(chunk, spec_of("bool", (10,)))) == b"\x06\x01\x02"
    assert data(PackBitsCodec("last_byte").encode(chunk, spec_of("bool", (10,)))) == b"\x01\x02\x06"


def test_kept_bits_are_sign_extended_for_signed_integers_only() -> None:
    values = np.array([-8, -1, 0, 7, 3], np.int16)
    codec = PackBitsCodec("none", 0, 3)
    spec = spec_of("int16", (5,))
    assert codec.encoded_size(spec) == 3
    assert codec.decode(codec.encode(values, spec), spec).tolist() == values.tolist()
    unsigned = spec_of("uint16", (5,))
    decoded = codec.decode(codec.encode(values.view(np.uint16), unsigned), unsigned)
    assert decoded.tolist() == [8, 15, 0, 7, 3]


def test_bits_below_the_first_come_back_as_zero() -> None:
    spec = spec_of("uint8", (2,))
    codec = PackBitsCodec("none", 2, 5)
    assert codec.decode(codec.encode(np.array([255, 7], np.uint8), spec), spec).tolist() == [0b111100, 0b100]


@pytest.mark.parametrize("first_last", [(3, 2), (0, 8), (8, None)])
def test_bits_that_the_elements_do_not_have_are_refused(first_last: tuple[int, int | None]) -> None:
    with pytest.raises(CodecError, match="bits that the elements do not have"):
        PackBitsCodec("none", *first_last).encoded_size(spec_of("uint8", (1,)))


@pytest.mark.parametrize("data_type", ["string", "bytes", "numpy.datetime64", "r16"])
def test_other_data_types_are_refused(data_type: str) -> None:
    value: JSON = (
        {"name": data_type, "configuration": {"unit": "s", "scale_factor": 1}} if "numpy" in data_type else data_type
    )
    with pytest.raises(CodecError, match="cannot store"):
        PackBitsCodec().encoded_size(spec_of(value, (1,)))


@pytest.mark.parametrize("wrong", [b"", b"\x06\x01", b"\x06\x01\x02\x00", b"\x05\x01\x02", b"\x07\x01\x02"])
def test_a_wrong_size_or_padding_is_an_error(wrong: bytes) -> None:
    with pytest.raises(CodecError):
        PackBitsCodec("first_byte").decode(wrong, spec_of("bool", (10,)))


@pytest.mark.parametrize(
    "configuration", [{"padding_encoding": "start_byte"}, {"first_bit": -1}, {"last_bit": 1.5}, {"start_bit": 0}]
)
def test_wrong_members_are_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        PackBitsCodec.from_json(configuration)
