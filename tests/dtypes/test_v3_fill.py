"""Fill values in v3 documents, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from tessarr.common import strict_json
from tessarr.dtypes.base import DataType
from tessarr.dtypes.parse import from_v3
from tessarr.errors import MetadataValidationError
from tessarr.types import JSON


def parse(name: JSON, text: str) -> np.ndarray:
    """The fill value of a document that holds `text`."""
    fill = from_v3(name).parse_fill(strict_json.loads(text.encode(), key="zarr.json"), 3)
    assert fill.shape == ()
    assert fill.dtype == from_v3(name).dtype
    return fill


def bits(scalar: np.ndarray) -> str:
    """The element, most significant byte first."""
    return "0x" + scalar.astype(scalar.dtype.newbyteorder(">")).tobytes().hex()


def dump(name: JSON, text: str) -> bytes:
    return strict_json.dumps(from_v3(name).dump_fill(parse(name, text), 3), indent=None)


def refused(name: JSON, text: str) -> None:
    with pytest.raises(MetadataValidationError, match="fill_value"):
        parse(name, text)


@pytest.mark.spec("V3-FILL-01")
def test_a_bool_is_true_or_false_and_nothing_else() -> None:
    assert parse("bool", "true").item() is True
    assert parse("bool", "false").item() is False
    assert dump("bool", "true") == b"true"
    for wrong in ("0", "1", '"false"', "null", "0.0", "[true]"):
        refused("bool", wrong)


@pytest.mark.spec("V3-FILL-02")
@pytest.mark.parametrize("name", ["int8", "int32", "uint8", "uint64", "int4"])
@pytest.mark.parametrize("wrong", ["1.0", "1e2", "1E0", '"5"', "true", "false", "null", "[1]", "{}", '"NaN"'])
def test_an_integer_is_written_without_fraction_and_exponent(name: str, wrong: str) -> None:
    refused(name, wrong)


@pytest.mark.spec("V3-FILL-02")
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("int8", -128, 127), ("uint8", 0, 255), ("int16", -(2**15), 2**15 - 1), ("uint16", 0, 2**16 - 1),
        ("int32", -(2**31), 2**31 - 1), ("uint32", 0, 2**32 - 1), ("int64", -(2**63), 2**63 - 1),
        ("uint64", 0, 2**64 - 1), ("int2", -2, 1), ("uint2", 0, 3), ("int4", -8, 7), ("uint4", 0, 15),
    ],
)  # fmt: skip
def test_an_integer_is_within_the_range_of_its_type(name: str, low: int, high: int) -> None:
    for number in (low, high, 0, 1):
        assert int(parse(name, str(number))) == number
    refused(name, str(low - 1))
    refused(name, str(high + 1))
    refused(name, str(10**30))


@pytest.mark.spec("V3-FILL-03")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("int64", "-9223372036854775808"), ("int64", "9223372036854775807"), ("int64", "9007199254740993"),
        ("uint64", "18446744073709551615"),
    ],
)  # fmt: skip
def test_64_bits_are_exact_to_the_digit(name: str, text: str) -> None:
    assert dump(name, text) == text.encode()


@pytest.mark.spec("V3-FILL-04")
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("float32", "0.1", "0x3dcccccd"), ("float16", "2049", "0x6800"), ("float16", "2051", "0x6802"),
        ("float32", "16777217", "0x4b800000"), ("float32", "16777219", "0x4b800002"), ("float16", "65519", "0x7bff"),
        ("float16", "65519.99999", "0x7bff"), ("float64", "0.1", "0x3fb999999999999a"),
        ("float64", "9007199254740993", "0x4340000000000000"), ("bfloat16", "257", "0x4380"),
        ("bfloat16", "259", "0x4382"), ("float8_e5m2", "1.125", "0x3c"), ("float8_e5m2", "1.375", "0x3e"),
        ("float32", "1e-45", "0x00000001"), ("float32", "7.006492321624085e-46", "0x00000000"),
        ("float32", "7.0064923216240862e-46", "0x00000001"), ("float64", "5e-324", "0x0000000000000001"),
        ("float32", "1e-999999999999", "0x00000000"), ("float64", "0e999999999999", "0x0000000000000000"),
        ("float64", "1e-99999999999999999999", "0x0000000000000000"), ("float32", "0", "0x00000000"),
    ],
)  # fmt: skip
def test_a_number_rounds_to_nearest_and_halfway_to_even(name: str, text: str, expected: str) -> None:
    assert bits(parse(name, text)) == expected


@pytest.mark.spec("V3-FILL-05")
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("float32", "1.0000000596046447753907", "0x3f800001"),
        ("float32", "1.000000059604644775390625", "0x3f800000"),
        ("float32", "1.000000059604644775390625" + "0" * 2000 + "1", "0x3f800001"),
        ("float16", "1.00048828125" + "0" * 5000 + "1", "0x3c01"),
        ("float16", "1.00048828125", "0x3c00"),
        ("bfloat16", "1.003906250000000000000001", "0x3f81"),
    ],
)
def test_a_number_rounds_once_from_its_decimal_text(name: str, text: str, expected: str) -> None:
    assert bits(parse(name, text)) == expected


@pytest.mark.spec("V3-FILL-06")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("float16", "65520"), ("float16", "-65520"), ("float32", "1e39"),
        ("float32", "340282356779733661637539395458142568448"),
        ("float64", "1e309"), ("float64", "1e999999999999"), ("float64", "-1e99999999999999999999"),
        ("float64", "1" + "0" * 400), ("bfloat16", "1e39"), ("float8_e5m2", "61440"), ("float4_e2m1fn", "7"),
        ("float8_e4m3fn", "465"), ("complex64", "[1e39, 0]"),
    ],
)  # fmt: skip
def test_a_finite_number_beyond_the_range_is_refused_and_does_not_become_infinite(name: str, text: str) -> None:
    with pytest.raises(MetadataValidationError, match="beyond the range"):
        parse(name, text)


@pytest.mark.spec("V3-FILL-06")
def test_the_largest_number_that_rounds_to_a_finite_one_is_taken() -> None:
    assert bits(parse("float32", "340282356779733661637539395458142568447")) == "0x7f7fffff"


@pytest.mark.spec("V3-FILL-07")
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16"])
def test_the_words_are_infinity_and_nan_exactly(name: str) -> None:
    assert float(parse(name, '"Infinity"')) == np.inf
    assert float(parse(name, '"-Infinity"')) == -np.inf
    assert np.isnan(float(parse(name, '"NaN"')))
    for word in ('"Infinity"', '"-Infinity"', '"NaN"'):
        assert dump(name, word) == word.encode()
    for wrong in (
        '"nan"',
        '"inf"',
        '"+Infinity"',
        '"-NaN"',
        '"NAN"',
        '"infinity"',
        '""',
        '"1.0"',
        "null",
        "true",
        "[]",
    ):
        refused(name, wrong)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_bare_nan_is_no_v3_json(value: float) -> None:
    with pytest.raises(MetadataValidationError):
        from_v3("float32").parse_fill(value, 3)


@pytest.mark.spec("V3-FILL-08")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float16", "0x7e00"), ("float32", "0x7fc00000"), ("float64", "0x7ff8000000000000"), ("bfloat16", "0x7fc0"),
        ("float8_e3m4", "0x78"), ("float8_e4m3", "0x7c"), ("float8_e5m2", "0x7e"), ("float8_e4m3fn", "0x7f"),
        ("float8_e4m3b11fnuz", "0x80"), ("float8_e4m3fnuz", "0x80"), ("float8_e5m2fnuz", "0x80"),
        ("float8_e8m0fnu", "0xff"),
    ],
)  # fmt: skip
def test_the_word_nan_means_one_bit_pattern(name: str, expected: str) -> None:
    assert bits(parse(name, '"NaN"')) == expected
    assert dump(name, f'"{expected}"') == b'"NaN"'
    assert bits(from_v3(name).cast_fill(float("nan"))) == expected


@pytest.mark.spec("V3-FILL-09")
@pytest.mark.parametrize(
    ("name", "text", "canonical"),
    [
        ("float32", '"0x7fc00000"', '"NaN"'), ("float32", '"0x3f800000"', "1.0"), ("float32", '"0x80000000"', "-0.0"),
        ("float64", '"0xfff8000000000000"', '"0xfff8000000000000"'), ("float32", '"0x7f800000"', '"Infinity"'),
        ("float16", '"0x3c00"', "1.0"), ("float64", '"0x0000000000000001"', "5e-324"), ("bfloat16", '"0x3f80"', "1.0"),
        ("float8_e4m3", '"0x38"', "1.0"), ("float4_e2m1fn", '"0x07"', "6.0"),
    ],
)  # fmt: skip
def test_hexadecimal_digits_are_the_bits_as_an_unsigned_integer(name: str, text: str, canonical: str) -> None:
    assert bits(parse(name, text)) == text.strip('"')
    assert dump(name, text) == canonical.encode()
    for order in "<>":
        ordered = from_v3(name).with_byteorder(order)
        assert bits(ordered.parse_fill(text.strip('"'), 3)) == text.strip('"')


@pytest.mark.spec("V3-FILL-10")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("float32", '"0x7fc00001"'), ("float32", '"0x7f800001"'), ("float32", '"0xffc00000"'), ("float16", '"0x7c01"'),
        ("float64", '"0x7ff0000000000001"'), ("bfloat16", '"0x7f81"'), ("float8_e5m2", '"0x7d"'),
        ("float8_e4m3fn", '"0xff"'),
    ],
)  # fmt: skip
def test_payloads_and_signalling_nans_survive(name: str, text: str) -> None:
    data_type = from_v3(name)
    fill = parse(name, text)
    assert bits(fill) == text.strip('"')
    assert dump(name, text) == text.encode()
    assert bits(data_type.cast_fill(fill)) == text.strip('"')
    assert bits(data_type.cast_fill(fill[()])) == text.strip('"')
    swapped = data_type.with_byteorder(">").cast_fill(fill)
    assert bits(swapped) == text.strip('"')
    assert data_type.dump_fill(swapped, 3) == text.strip('"')


@pytest.mark.spec("V3-FILL-11")
@pytest.mark.parametrize(
    "wrong",
    [
        '"0x7fc0"',
        '"0x7fc0000000"',
        '"0x7fc0000"',
        '"0X7fc00000"',
        '"7fc00000"',
        '"0x7fc0000g"',
        '"-0x7fc00000"',
        '"0x"',
    ],
)
def test_hexadecimal_digits_are_twice_the_size_in_bytes(wrong: str) -> None:
    refused("float32", wrong)


@pytest.mark.spec("V3-FILL-11")
def test_hexadecimal_digits_may_be_of_either_case() -> None:
    assert bits(parse("float32", '"0x7FC0000A"')) == "0x7fc0000a"
    refused("float4_e2m1fn", '"0x10"')
    refused("float6_e2m3fn", '"0x40"')


@pytest.mark.spec("V3-FILL-12")
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16", "float8_e4m3", "float4_e2m1fn"])
@pytest.mark.parametrize("text", ["-0.0", "-0e5", "-1e-9999"])
def test_minus_zero_keeps_its_sign(name: str, text: str) -> None:
    fill = parse(name, text)
    assert np.signbit(float(fill))
    assert dump(name, text) == b"-0.0"
    assert bits(from_v3(name).cast_fill(-0.0)) == bits(fill)


@pytest.mark.spec("V3-FILL-13")
def test_complex_numbers_are_two_floats() -> None:
    assert parse("complex64", "[1, 2]").item() == 1 + 2j
    assert dump("complex64", '["-Infinity", "NaN"]') == b'["-Infinity", "NaN"]'
    assert dump("complex64", '["0x7fc00001", 0]') == b'["0x7fc00001", 0.0]'
    assert parse("complex64", '["0x7fc00001", -0.0]').astype(">c8").tobytes().hex() == "7fc0000180000000"
    assert dump("complex_bfloat16", '["0x7fc1", 1.5]') == b'["0x7fc1", 1.5]'
    assert dump("complex_float8_e5m2", '["NaN", 1.5]') == b'["NaN", 1.5]'
    for wrong in ("[1]", "[1, 2, 3]", "5", '"NaN"', '"12"', "[1, true]", "[1, null]", "null", "{}"):
        refused("complex64", wrong)


@pytest.mark.spec("V3-FILL-14")
def test_raw_bits_are_one_integer_per_byte() -> None:
    assert parse("r16", "[1, 2]").tobytes() == b"\x01\x02"
    assert dump("r16", "[1, 255]") == b"[1, 255]"
    for wrong in (
        "[1]",
        "[1, 2, 3]",
        "[256, 0]",
        "[-1, 0]",
        str([0] * 16),
        '"AQI="',
        "[1.0, 2]",
        "[true, 1]",
        "258",
        "null",
    ):
        refused("r16", wrong)


def test_the_unregistered_byte_types_are_base64() -> None:
    raw: JSON = {"name": "raw_bytes", "configuration": {"length_bytes": 2}}
    assert parse(raw, '"AQI="').tobytes() == b"\x01\x02"
    assert dump(raw, '"AQI="') == b'"AQI="'
    refused(raw, "[1, 2]")
    refused(raw, '"AQ=="')
    padded: JSON = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}}
    assert parse(padded, '"YWI="').tobytes() == b"ab\0\0"
    assert parse(padded, '""').tobytes() == bytes(4)
    assert dump(padded, '"YWIAAA=="') == b'"YWI="'
    refused(padded, '"YWJjZGU="')
    refused(padded, "0")


def test_bytes_of_any_length_are_base64_or_a_list() -> None:
    assert parse("bytes", '"AQID"').item() == b"\x01\x02\x03"
    assert parse("bytes", "[1, 2, 3]").item() == b"\x01\x02\x03"
    assert dump("variable_length_bytes", "[1, 2, 3]") == b'"AQID"'
    for wrong in ("[256]", "0", "null", '"?"', "[true]"):
        refused("bytes", wrong)


def test_text_is_a_json_string() -> None:
    assert parse("string", '"añb\\u0000"').item() == "añb\0"
    fixed: JSON = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}
    assert parse(fixed, '"foo"').item() == "foo"
    assert dump(fixed, '"fo\\u0000"') == b'"fo"'
    refused(fixed, '"fooo"')
    for name in ("string", fixed):
        for wrong in ("0", "null", "[]", '"\\ud800"'):
            refused(name, wrong)


@pytest.mark.parametrize("name", ["numpy.datetime64", "numpy.timedelta64"])
def test_times_are_counts_or_nat(name: str) -> None:
    document: JSON = {"name": name, "configuration": {"unit": "ns", "scale_factor": 1}}
    assert np.isnat(parse(document, '"NaT"'))
    assert np.isnat(parse(document, "-9223372036854775808"))
    assert dump(document, "-9223372036854775808") == b'"NaT"'
    assert dump(document, "9223372036854775807") == b"9223372036854775807"
    for wrong in ("9223372036854775808", "1.0", '"nat"', "true", "null", '"2020-01-01"'):
        refused(document, wrong)


# -- struct ------------------------------------------------------------------------------------------------------

POINT: JSON = {
    "name": "struct",
    "configuration": {"fields": [{"name": "x", "data_type": "float32"}, {"name": "n", "data_type": "uint8"}]},
}
LEGACY: JSON = {"name": "structured", "configuration": {"fields": [["x", "float32"], ["n", "uint8"]]}}


def test_a_record_is_an_object_of_every_field() -> None:
    fill = parse(POINT, '{"n": 3, "x": "0x7f800001"}')
    assert fill["n"] == 3
    assert bits(fill["x"]) == "0x7f800001"
    assert dump(POINT, '{"n": 3, "x": "0x7f800001"}') == b'{"x": "0x7f800001", "n": 3}'
    outer: JSON = {"name": "struct", "configuration": {"fields": [{"name": "p", "data_type": POINT}]}}
    assert dump(outer, '{"p": {"x": -0.0, "n": 255}}') == b'{"p": {"x": -0.0, "n": 255}}'
    for wrong in ('"AACAPwM="', "0", "null", "[1.0, 3]"):
        refused(POINT, wrong)


def test_every_problem_of_a_record_is_told_with_its_place() -> None:
    outer: JSON = {
        "name": "struct",
        "configuration": {"fields": [{"name": "p", "data_type": POINT}, {"name": "q", "data_type": "int8"}]},
    }
    with pytest.raises(MetadataValidationError) as caught:
        parse(outer, '{"p": {"x": "nan", "z": 1}, "q": 128}')
    assert sorted(problem.loc for problem in caught.value.problems) == [("p", "n"), ("p", "x"), ("p", "z"), ("q",)]


def test_the_legacy_record_is_base64_or_an_object() -> None:
    fill = from_v3(LEGACY).with_byteorder("<").parse_fill("AACAPwM=", 3)
    assert fill.item() == (1.0, 3)
    assert from_v3(LEGACY).dump_fill(fill, 3) == {"x": 1.0, "n": 3}
    assert from_v3(LEGACY).parse_fill({"x": 1.0, "n": 3}, 3).item() == (1.0, 3)
    refused(LEGACY, '"AACAPw=="')


# -- defaults ----------------------------------------------------------------------------------------------------

ALL: list[JSON] = [
    "bool", "int8", "int64", "uint8", "uint64", "float16", "float32", "float64", "complex64", "complex128", "r24",
    "string", "bytes", "int2", "int4", "uint2", "uint4", "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e5m2",
    "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
    "float6_e3m2fn", "float4_e2m1fn", "complex_float16", "complex_bfloat16", "complex_float8_e3m4",
    "complex_float8_e4m3", "complex_float8_e5m2", "complex_float8_e4m3b11fnuz", "complex_float8_e4m3fnuz",
    "complex_float8_e5m2fnuz", "complex_float8_e8m0fnu", "complex_float6_e2m3fn", "complex_float6_e3m2fn",
    "complex_float4_e2m1fn", POINT, LEGACY,
    {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}},
    {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}},
    {"name": "raw_bytes", "configuration": {"length_bytes": 3}},
    {"name": "numpy.datetime64", "configuration": {"unit": "D", "scale_factor": 1}},
    {"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 5}},
]  # fmt: skip


@pytest.mark.spec("V3-FILL-15", "V3-META-07")
@pytest.mark.parametrize("document", ALL, ids=str)
def test_every_type_has_a_default_that_can_be_written_and_read_back(document: JSON) -> None:
    data_type: DataType = from_v3(document)
    fill = data_type.default_fill()
    assert fill.shape == ()
    assert fill.dtype == data_type.dtype
    for version in (2, 3):
        written = strict_json.dumps(data_type.dump_fill(fill, version))
        again = data_type.parse_fill(strict_json.loads(written, key="k"), version)
        assert again.tobytes() == fill.tobytes() if data_type.itemsize else again.item() == fill.item()
    assert np.full((2,), fill, dtype=data_type.dtype).shape == (2,)
    if data_type.itemsize:
        assert fill.tobytes() == bytes(data_type.itemsize) or np.isnat(fill)
        assert np.full(3, fill, dtype=data_type.dtype).tobytes() == 3 * fill.tobytes()
    with pytest.raises(MetadataValidationError):
        data_type.parse_fill(None, 3)
