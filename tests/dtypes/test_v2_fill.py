"""Fill values in v1 and v2 documents."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tessarr.common import strict_json
from tessarr.dtypes.numeric import Bool, Complex64, Float32, Float64, Int32, UInt64
from tessarr.dtypes.parse import from_v2
from tessarr.dtypes.raw import FixedLengthUTF32, NullTerminatedBytes, RawBytes
from tessarr.dtypes.time import DateTime64, TimeDelta64
from tessarr.dtypes.variable import (
    Categories,
    JSONObjects,
    RaggedArrays,
    VariableLengthBytes,
    VariableLengthUTF8,
)
from tessarr.errors import MetadataValidationError


def bits(scalar: np.ndarray) -> str:
    """The element, most significant byte first."""
    return scalar.astype(scalar.dtype.newbyteorder(">")).tobytes().hex()


@pytest.mark.spec("V2-30")
@pytest.mark.parametrize(
    ("value", "text"),
    [(np.nan, '"NaN"'), (np.inf, '"Infinity"'), (-np.inf, '"-Infinity"'), (1.5, "1.5"), (-0.0, "-0.0")],
)
def test_floats_that_json_lacks_are_written_as_words(value: float, text: str) -> None:
    for data_type in (Float32(), Float64(endianness="big")):
        fill = data_type.cast_fill(value)
        document = data_type.dump_fill(fill, 2)
        assert strict_json.dumps(document) == text.encode()
        assert bits(data_type.parse_fill(strict_json.loads(text.encode(), key="k"), 2)) == bits(fill)


def test_v2_cannot_tell_nans_apart_and_says_nan_for_all_of_them() -> None:
    assert Float32().dump_fill(Float32().cast_fill("0x7fc00001"), 2) == "NaN"
    assert Float32().dump_fill(Float32().cast_fill("0xffc00000"), 2) == "NaN"


@pytest.mark.parametrize("value", ["nan", "0x7fc00000", "1.5", None, True, [], {}])
def test_other_forms_of_floats_are_refused(value: object) -> None:
    with pytest.raises(MetadataValidationError, match="fill_value"):
        Float32().parse_fill(value, 2)  # type: ignore[arg-type]


def test_the_bare_nan_of_v1_documents_is_read() -> None:
    loaded = strict_json.loads(b"NaN", key="meta", allow_nan=True)
    assert bits(Float32().parse_fill(loaded, 1)) == "7fc00000"


@pytest.mark.spec("V2-31")
@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("|S12", b"foo", "Zm9vAAAAAAAAAAAA"),
        ("|S12", b"", "AAAAAAAAAAAAAAAA"),
        ([["r", "|u1"], ["g", "|u1"], ["b", "|u1"]], (1, 2, 3), "AQID"),
        ([["x", "<f4"], ["y", "<f4"], ["z", "<f4", [2, 2]]], 0, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    ],
)
def test_bytes_and_records_are_base64_of_the_whole_element(dtype: object, value: object, text: str) -> None:
    data_type = from_v2(dtype, None)  # type: ignore[arg-type]
    fill = data_type.cast_fill(value)
    assert data_type.dump_fill(fill, 2) == text
    assert data_type.parse_fill(text, 2).tobytes() == fill.tobytes()


@pytest.mark.spec("V2-32")
def test_an_unpadded_string_is_padded_with_nul() -> None:
    fill = NullTerminatedBytes(length=12).parse_fill("Zm9v", 2)
    assert fill.tobytes() == b"foo" + bytes(9)


@pytest.mark.spec("V2-32")
@pytest.mark.parametrize("value", [0, "", 0.0])
@pytest.mark.parametrize("dtype", ["|S12", "|V12", [["a", "<i2"], ["b", "<f8"], ["c", "|S2"]]])
def test_what_old_writers_put_where_base64_belongs_is_read_as_zeros_with_a_diagnostic(
    dtype: object, value: object
) -> None:
    data_type = from_v2(dtype, None)  # type: ignore[arg-type]
    assert data_type.parse_fill(value, 2).tobytes() == bytes(12)  # type: ignore[arg-type]
    (said,) = data_type.fill_diagnostics(value, 2)  # type: ignore[arg-type]
    assert "not Base64" in said
    assert data_type.fill_diagnostics(data_type.dump_fill(data_type.default_fill(), 2), 2) == ()


@pytest.mark.parametrize("value", ["foo", "Zm9v!", "Zm9", "ü", 1, None, False, "Zm9vZm9vZm9vZm9vZm9v", "_-_-"])
def test_what_is_neither_base64_nor_short_enough_is_refused(value: object) -> None:
    with pytest.raises(MetadataValidationError, match="Base64"):
        NullTerminatedBytes(length=12).parse_fill(value, 2)  # type: ignore[arg-type]


@pytest.mark.spec("V2-33")
def test_void_is_base64_of_exactly_its_bytes() -> None:
    data_type = from_v2("|V10", None)
    fill = data_type.cast_fill(bytes(range(10)))
    assert data_type.dump_fill(fill, 2) == "AAECAwQFBgcICQ=="
    assert data_type.parse_fill("AAECAwQFBgcICQ==", 2).tobytes() == bytes(range(10))
    with pytest.raises(MetadataValidationError, match="exactly 10"):
        data_type.parse_fill("AQID", 2)


def test_a_record_is_base64_of_exactly_its_bytes_in_its_own_byte_order() -> None:
    data_type = from_v2([["a", "<i2"], ["b", ">i2"]], None)
    assert data_type.dump_fill(data_type.cast_fill((1, 2)), 2) == "AQAAAg=="
    assert data_type.parse_fill("AQAAAg==", 2).item() == (1, 2)
    with pytest.raises(MetadataValidationError, match="exactly 4"):
        data_type.parse_fill("AQID", 2)


@pytest.mark.spec("V2-34")
@pytest.mark.parametrize("endianness", ["little", "big"])
def test_fixed_length_text_is_a_json_string(endianness: str) -> None:
    data_type = FixedLengthUTF32(length=3, endianness=endianness)  # type: ignore[arg-type]
    fill = data_type.parse_fill("añb", 2)
    assert fill.item() == "añb"
    assert bits(fill) == "00000061000000f100000062"
    assert data_type.dump_fill(fill, 2) == "añb"
    with pytest.raises(MetadataValidationError, match="at most 3"):
        data_type.parse_fill("añbc", 2)


def test_the_zero_that_zarr_python_wrote_for_text_is_read_as_its_readers_do() -> None:
    assert FixedLengthUTF32(length=4).parse_fill(0, 2).item() == ""
    assert VariableLengthUTF8().parse_fill(0, 2).item() == "0"
    assert VariableLengthBytes().parse_fill(0, 2).item() == b""
    assert Categories().parse_fill(0, 2).item() == "0"
    with pytest.raises(MetadataValidationError):
        VariableLengthUTF8().parse_fill(False, 2)


@pytest.mark.spec("V2-35")
@pytest.mark.parametrize("endianness", ["little", "big"])
def test_complex_numbers_are_lists_of_two(endianness: str) -> None:
    data_type = Complex64(endianness=endianness)  # type: ignore[arg-type]
    fill = data_type.parse_fill([0.0, "NaN"], 2)
    assert data_type.dump_fill(fill, 2) == [0.0, "NaN"]
    assert bits(fill) == "000000007fc00000"
    for wrong in (0, "NaN", [1], [1, 2, 3], [True, 0], None):
        with pytest.raises(MetadataValidationError):
            data_type.parse_fill(wrong, 2)


@pytest.mark.spec("V2-36")
@pytest.mark.parametrize("data_type", [DateTime64(unit="ns"), TimeDelta64(unit="D", endianness="big")])
def test_times_are_counts_and_nat_is_the_smallest_integer(data_type: DateTime64) -> None:
    nat = data_type.parse_fill("NaT", 2)
    assert np.isnat(nat)
    assert data_type.dump_fill(nat, 2) == -9223372036854775808
    assert np.isnat(data_type.parse_fill(-9223372036854775808, 2))
    assert data_type.dump_fill(data_type.parse_fill(9223372036854775807, 2), 2) == 9223372036854775807
    for wrong in (2**63, 0.5, True, "now", None):
        with pytest.raises(MetadataValidationError):
            data_type.parse_fill(wrong, 2)


@pytest.mark.spec("V2-37")
def test_booleans_are_written_as_booleans_and_read_from_0_and_1_too() -> None:
    assert [bool(Bool().parse_fill(value, 2)) for value in (True, False, 1, 0)] == [True, False, True, False]
    assert json.dumps(Bool().dump_fill(Bool().parse_fill(1, 2), 2)) == "true"
    for wrong in (2, "true", None, 0.5):
        with pytest.raises(MetadataValidationError):
            Bool().parse_fill(wrong, 2)


@pytest.mark.spec("V2-38")
@pytest.mark.parametrize("number", [18446744073709551615, 2**53 + 1, 2**63])
def test_large_integers_stay_exact(number: int) -> None:
    data_type = UInt64(endianness="little")
    fill = data_type.parse_fill(strict_json.loads(str(number).encode(), key="k"), 2)
    assert int(fill) == number
    assert strict_json.dumps(data_type.dump_fill(fill, 2)) == str(number).encode()


def test_an_integer_written_as_a_float_is_read_and_written_as_an_integer() -> None:
    fill = Int32().parse_fill(strict_json.FloatLiteral("-9999.0"), 2)
    assert strict_json.dumps(Int32().dump_fill(fill, 2)) == b"-9999"
    for wrong in (0.5, "0", float("nan"), float("inf"), 2**31, True, None):
        with pytest.raises(MetadataValidationError):
            Int32().parse_fill(wrong, 2)


def test_json_objects_take_any_json_value() -> None:
    data_type = JSONObjects()
    for value in (0, None, "x", [1, {"a": None}], {"b": [True]}):
        fill = data_type.parse_fill(value, 2)  # type: ignore[arg-type]
        assert fill.shape == ()
        assert data_type.dump_fill(fill, 2) == value


def test_ragged_arrays_are_lists() -> None:
    data_type = RaggedArrays(data_type=Int32(endianness="little"))
    fill = data_type.parse_fill([1, 2], 2)
    assert fill[()].tolist() == [1, 2]
    assert fill[()].dtype == np.dtype("<i4")
    assert data_type.dump_fill(fill, 2) == [1, 2]
    assert data_type.parse_fill(0, 2)[()].size == 0
    with pytest.raises(MetadataValidationError):
        data_type.parse_fill([1.5], 2)


def test_bytes_of_any_length_are_base64() -> None:
    fill = VariableLengthBytes().parse_fill("YWJj", 2)
    assert fill.item() == b"abc"
    assert VariableLengthBytes().dump_fill(fill, 2) == "YWJj"
    with pytest.raises(MetadataValidationError):
        VariableLengthBytes().parse_fill([97], 2)


def test_raw_bytes_write_base64_in_v2_whatever_their_v3_name() -> None:
    data_type = RawBytes(length=2)
    assert data_type.dump_fill(data_type.cast_fill(b"\x01\x02"), 2) == "AQI="
    assert data_type.dump_fill(data_type.cast_fill(b"\x01\x02"), 3) == [1, 2]
