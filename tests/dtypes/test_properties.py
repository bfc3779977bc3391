"""Random bits and numbers: what is written is read back to the bit, and rounding agrees with other arithmetic."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.common import strict_json
from tessarr.dtypes import floats
from tessarr.dtypes.base import DataType
from tessarr.dtypes.element import from_bits
from tessarr.dtypes.parse import from_numpy, from_v2, from_v3
from tessarr.types import JSON

FIXED: list[JSON] = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "r40", "bfloat16", "complex_float16", "complex_bfloat16", "float8_e4m3", "float8_e5m2",
    "float8_e3m4", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    "complex_float8_e5m2",
    {"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 25}},
    {"name": "raw_bytes", "configuration": {"length_bytes": 5}},
    {"name": "struct", "configuration": {"fields": [
        {"name": "a", "data_type": "float32"}, {"name": "b", "data_type": "bfloat16"},
        {"name": "c", "data_type": {"name": "struct", "configuration": {"fields": [
            {"name": "d", "data_type": "complex64"}, {"name": "e", "data_type": "r16"}]}}}]}},
]  # fmt: skip

NUMPY_FLOATS = {"float16": "e", "float32": "f", "float64": "d"}
SMALL = [
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e5m2", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
]  # fmt: skip


def through_json(data_type: DataType, fill: np.ndarray, version: int) -> np.ndarray:
    written = strict_json.dumps(data_type.dump_fill(fill, version))  # type: ignore[arg-type]
    return data_type.parse_fill(strict_json.loads(written, key="k"), version)  # type: ignore[arg-type]


@pytest.mark.spec("V3-FILL-10")
@pytest.mark.parametrize("document", FIXED, ids=str)
@given(data=st.binary(min_size=64, max_size=64), order=st.sampled_from("<>"))
def test_any_bits_are_written_to_v3_and_read_back(document: JSON, data: bytes, order: str) -> None:
    data_type = from_v3(document).with_byteorder(order)
    fill = np.frombuffer(data[: data_type.itemsize], data_type.dtype).reshape(())
    again = through_json(data_type, fill, 3)
    assert again.tobytes() == fill.tobytes()
    assert data_type.cast_fill(fill).tobytes() == fill.tobytes()


@pytest.mark.spec("V2-31", "V2-33")
@given(data=st.binary(min_size=23, max_size=23))
def test_any_bytes_of_a_v2_record_are_written_and_read_back(data: bytes) -> None:
    data_type = from_v2([["a", ">f4"], ["b", "<i2", [2]], ["c", "|S3"], ["d", [["e", ">c8"], ["f", "<U1"]]]], None)
    assert data_type.itemsize == 4 + 4 + 3 + 12 == 23
    fill = np.frombuffer(data, data_type.dtype).reshape(())
    assert through_json(data_type, fill, 2).tobytes() == data


@given(number=st.integers(-(2**63), 2**63 - 1))
def test_times_are_written_and_read_back_in_all_formats(number: int) -> None:
    data_type = from_v2(">m8[10ns]", None)
    for version in (1, 2, 3):
        fill = data_type.parse_fill(number, version)
        assert through_json(data_type, fill, version).tobytes() == number.to_bytes(8, "big", signed=True)


@given(text=st.text(max_size=8))
def test_text_is_written_and_read_back(text: str) -> None:
    for data_type in (from_v3("string"), from_v2("<U8", None), from_v2(">U8", None)):
        fill = data_type.cast_fill(text)
        expected = text if data_type.itemsize is None else text.rstrip("\0")
        assert fill.item() == expected
        assert through_json(data_type, fill, 3).item() == through_json(data_type, fill, 2).item() == expected


@given(data=st.binary(max_size=8))
def test_bytes_are_written_and_read_back(data: bytes) -> None:
    for data_type in (from_v3("bytes"), from_v2("|S8", None)):
        fill = data_type.cast_fill(data)
        expected = data if data_type.itemsize is None else data.rstrip(b"\0")
        assert through_json(data_type, fill, 3).item() == through_json(data_type, fill, 2).item() == expected


@pytest.mark.spec("V3-FILL-04")
@pytest.mark.parametrize("name", NUMPY_FLOATS)
@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_rounds_as_numpy_rounds_it(name: str, number: float) -> None:
    layout = getattr(floats, name.upper())
    try:
        expected = struct.pack(f">{NUMPY_FLOATS[name]}", number)
    except OverflowError:
        with pytest.raises(ValueError, match="range"):
            layout.cast(number)
        return
    assert layout.cast(number).to_bytes(layout.nbytes, "big") == expected
    assert layout.decode(layout.cast(number)) == struct.unpack(f">{NUMPY_FLOATS[name]}", expected)[0]


@pytest.mark.spec("V3-FILL-05")
@given(digits=st.integers(0, 10**40), power=st.integers(-70, 10), sign=st.sampled_from(["", "-"]))
def test_decimal_text_rounds_to_the_nearest_float32(digits: int, power: int, sign: str) -> None:
    literal = strict_json.FloatLiteral(f"{sign}{digits}e{power}")
    exact = Fraction(literal.text)
    try:
        bits = floats.FLOAT32.parse(literal)
    except ValueError:
        assert abs(exact) >= Fraction(340282356779733661637539395458142568448)
        return
    found = Fraction(floats.FLOAT32.decode(bits))
    magnitude = bits & 0x7FFFFFFF
    for neighbour in (magnitude - 1, magnitude + 1):
        if 0 <= neighbour <= floats.FLOAT32.largest:
            value = Fraction(floats.FLOAT32.decode(neighbour | (bits & 0x80000000)))
            distance, other = abs(found - exact), abs(value - exact)
            assert distance < other or (distance == other and magnitude % 2 == 0)


@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_text_of_a_double_gives_this_double(number: float) -> None:
    assert floats.FLOAT64.parse(strict_json.FloatLiteral(repr(number))) == int.from_bytes(
        struct.pack(">d", number), "big"
    )


@pytest.mark.parametrize("name", SMALL)
def test_every_bit_pattern_of_a_small_float_has_the_value_that_ml_dtypes_gives_it(name: str) -> None:
    data_type = from_numpy(name)
    layout = data_type.layout  # type: ignore[attr-defined]
    for bits in range(layout.limit):
        fill = from_bits(bits, data_type.dtype)
        theirs = float(fill[()])
        assert layout.is_nan(bits) == math.isnan(theirs)
        if math.isfinite(theirs):
            assert layout.decode(bits) == theirs
            assert math.copysign(1, layout.decode(bits)) == math.copysign(1, theirs)
            assert layout.cast(theirs) == bits
        elif math.isinf(theirs):
            assert bits & ~layout.sign == layout.infinity
            assert layout.cast(theirs) == bits
        assert through_json(data_type, fill, 3).tobytes() == fill.tobytes()


@pytest.mark.parametrize("name", SMALL)
@given(number=st.floats(-6, 6, width=32) | st.floats(0.0078125, 1, width=32))
def test_a_number_rounds_as_ml_dtypes_rounds_it(name: str, number: float) -> None:
    layout = from_numpy(name).layout  # type: ignore[attr-defined]
    if name == "float8_e8m0fnu":
        number = abs(number)
        if number < 1e-30 or number == 1.5 * 2 ** math.floor(math.log2(number)):
            return  # ml_dtypes rounds what lies halfway up, and tiny numbers to NaN
    theirs = np.array(number, dtype=np.float32).astype(getattr(ml_dtypes, name))
    assert layout.cast(number) == int.from_bytes(theirs.tobytes(), "little")
