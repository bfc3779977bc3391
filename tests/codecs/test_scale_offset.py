from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessarr.codecs import ScaleOffset, ScaleOffsetCodec
from tessarr.codecs.chain import BoundChain
from tessarr.codecs.parse import codec_from
from tessarr.errors import CodecError, MetadataValidationError
from tests.codecs.samples import spec_of


def encoded(data_type: str, values: list[float], **options: Any) -> list[Any]:
    spec = spec_of(data_type, (len(values),))
    found: list[Any] = ScaleOffsetCodec(**options).encode(np.array(values, spec.dtype), spec).tolist()
    return found


def decoded(data_type: str, values: list[float], **options: Any) -> list[Any]:
    spec = spec_of(data_type, (len(values),))
    found: list[Any] = ScaleOffsetCodec(**options).decode(np.array(values, spec.dtype), spec).tolist()
    return found


def test_the_name_of_zarr_python_is_the_same_class() -> None:
    assert ScaleOffset is ScaleOffsetCodec
    assert ScaleOffset() == codec_from("scale_offset")


def test_both_members_are_written() -> None:
    assert ScaleOffset(offset=5, scale=0.5).to_json()["configuration"] == {"offset": 5, "scale": 0.5}


def test_integers_and_floats_are_computed_in_their_own_arithmetic() -> None:
    assert encoded("int16", [5, 6, 4], offset=5, scale=3) == [0, 3, -3]
    assert decoded("int16", [0, 3, -3], offset=5, scale=3) == [5, 6, 4]
    assert encoded("float32", [7.0], offset=5, scale=0.1) == [float(np.float32(2) * np.float32(0.1))]
    assert encoded("int4", [3, -2], offset=1, scale=2) == [4, -6]


@pytest.mark.parametrize(
    ("data_type", "values", "options"),
    [
        ("uint8", [4], {"offset": 5}),
        ("int8", [100], {"scale": 2}),
        ("int8", [-128], {"offset": 100, "scale": -1}),
        ("int64", [2**62], {"scale": 4}),
        ("uint64", [2**63], {"scale": 2}),
        ("float32", [3e38], {"scale": 10}),
        ("int4", [7], {"scale": 2}),
    ],
)
def test_what_does_not_fit_is_an_error_not_a_wrap_around(
    data_type: str, values: list[float], options: dict[str, Any]
) -> None:
    with pytest.raises(CodecError, match="does not fit the data type"):
        encoded(data_type, values, **options)


@pytest.mark.parametrize(
    ("data_type", "values", "options"),
    [
        ("int8", [5], {"scale": 2}),
        ("int8", [5], {"scale": 0}),
        ("int8", [-128], {"scale": -1}),
        ("uint8", [250], {"offset": 10}),
        ("float64", [1.0], {"scale": 0}),
    ],
)
def test_what_cannot_be_decoded_is_an_error(data_type: str, values: list[float], options: dict[str, Any]) -> None:
    with pytest.raises(CodecError):
        decoded(data_type, values, **options)


def test_nan_and_infinity_pass() -> None:
    assert np.isnan(encoded("float64", [float("nan")], scale=3)[0])
    assert encoded("float64", [float("inf")], scale=3) == [float("inf")]


def test_the_fill_value_goes_through_the_codec() -> None:
    assert ScaleOffset(offset=5, scale=2).encoded_spec(spec_of("int32", (1,), 8)).fill == 6
    with pytest.raises(CodecError):
        ScaleOffset(offset=5).encoded_spec(spec_of("uint8", (1,), 0))


@pytest.mark.parametrize("data_type", ["bool", "string", "complex64"])
def test_other_data_types_are_refused(data_type: str) -> None:
    with pytest.raises(CodecError):
        ScaleOffset().encoded_spec(spec_of(data_type, (1,)))


def test_members_are_fill_values_of_the_data_type() -> None:
    assert encoded("float32", [1.0], offset="0x3f800000") == [0.0]
    for options in ({"offset": 0.5}, {"scale": 300}):
        with pytest.raises(CodecError, match="is not representable in dtype int8"):
            ScaleOffset(**options).encoded_spec(spec_of("int8", (1,)))


@pytest.mark.parametrize(
    "configuration", [{"offset": None}, {"scale": [1]}, {"scale": True}, {"scale": 1, "dtype": "<f4"}]
)
def test_wrong_members_are_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        ScaleOffset.from_json(configuration)


def test_packed_data_of_the_climate_conventions() -> None:
    chain = BoundChain(
        [
            ScaleOffset(offset=273.0, scale=100),
            codec_from({"name": "cast_value", "configuration": {"data_type": "int16", "scalar_map": {
                "encode": [["NaN", -32768]], "decode": [[-32768, "NaN"]]}}}),
            codec_from({"name": "bytes", "configuration": {"endian": "little"}}),
        ],
        spec_of("float64", (4,), float("nan")),
    )  # fmt: skip
    stored = chain.encode(np.array([273.0, 280.004, 250.5, np.nan]))
    assert np.frombuffer(stored, "<i2").tolist() == [0, 700, -2250, -32768]
    np.testing.assert_array_equal(chain.decode(stored), [273.0, 280.0, 250.5, np.nan])
