from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessarr.codecs import CastValue, CastValueCodec
from tessarr.codecs.parse import codec_from
from tessarr.errors import CodecError, MetadataValidationError
from tests.codecs.samples import spec_of

INF, NAN = float("inf"), float("nan")
MODES = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")


def cast(source: str, target: str, values: list[float], **options: Any) -> list[Any]:
    spec = spec_of(source, (len(values),))
    found: list[Any] = CastValueCodec(data_type=target, **options).encode(np.array(values, spec.dtype), spec).tolist()
    return found


def test_the_document_leaves_out_defaults() -> None:
    assert CastValue(data_type="int8").to_json() == {"name": "cast_value", "configuration": {"data_type": "int8"}}
    full = {
        "data_type": "uint8",
        "rounding": "towards-zero",
        "out_of_range": "clamp",
        "scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]},
    }
    assert codec_from({"name": "cast_value", "configuration": full}).to_json()["configuration"] == full
    assert CastValue(data_type="uint8", scalar_map={"encode": {"NaN": 0}}).encode_map == (("NaN", 0),)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("nearest-even", [0, 2, 2, 0, -2, 0, -3, 2]),
        ("towards-zero", [0, 1, 2, 0, -1, 0, -2, 2]),
        ("towards-positive", [1, 2, 3, 0, -1, 1, -2, 3]),
        ("towards-negative", [0, 1, 2, -1, -2, 0, -3, 2]),
        ("nearest-away", [1, 2, 3, -1, -2, 0, -3, 2]),
    ],
)
def test_rounding_to_integers(mode: str, expected: list[int]) -> None:
    assert (
        cast("float64", "int8", [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, -2.7, 2.2], rounding=mode) == expected
    )


@pytest.mark.parametrize(
    ("source", "target", "values", "clamped", "wrapped"),
    [
        ("float64", "int8", [128.0, -129.0], [127, -128], [-128, 127]),
        ("int32", "int16", [32768, -40000], [32767, -32768], [-32768, 25536]),
        ("float64", "uint64", [2.0**64, 2.0**65 + 2.0**13, -1.0], [2**64 - 1, 2**64 - 1, 0], [0, 2**13, 2**64 - 1]),
        ("float64", "int64", [2.0**63, -(2.0**64)], [2**63 - 1, -(2**63)], [-(2**63), 0]),
        ("uint64", "int64", [2**63, 2**64 - 1], [2**63 - 1, 2**63 - 1], [-(2**63), -1]),
        ("int64", "uint64", [-1], [0], [2**64 - 1]),
        ("int16", "int4", [9, -9], [7, -8], [-7, 7]),
        ("int16", "uint2", [5, -1], [3, 0], [1, 3]),
    ],
)
def test_out_of_range_is_an_error_or_clamped_or_wrapped(
    source: str, target: str, values: list[float], clamped: list[int], wrapped: list[int]
) -> None:
    for value in values:
        with pytest.raises(CodecError, match="cannot turn a value into"):
            cast(source, target, [value])
    assert cast(source, target, values, out_of_range="clamp") == clamped
    assert cast(source, target, values, out_of_range="wrap") == wrapped


def test_infinity_clamps_to_integers_and_does_not_wrap() -> None:
    assert cast("float32", "int8", [INF, -INF], out_of_range="clamp") == [127, -128]
    with pytest.raises(CodecError):
        cast("float32", "int8", [INF], out_of_range="wrap")


@pytest.mark.parametrize("mode", [None, "clamp", "wrap"])
def test_nan_has_no_place_in_integers_unless_it_is_mapped(mode: str | None) -> None:
    with pytest.raises(CodecError, match="NaN"):
        cast("float64", "uint8", [NAN], out_of_range=mode)
    table = {"encode": [["NaN", 7]]}
    assert cast("float64", "uint8", [NAN, 3.0], out_of_range=mode, scalar_map=table) == [7, 3]


def test_floats_beyond_the_largest() -> None:
    with pytest.raises(CodecError):
        cast("float64", "float32", [1e300])
    assert cast("float64", "float32", [1e300, -1e300, INF], out_of_range="clamp") == [INF, -INF, INF]
    assert cast("float32", "float4_e2m1fn", [1e9, -INF], out_of_range="clamp") == [6, -6]
    for value in (1e9, INF, NAN):
        with pytest.raises(CodecError):
            cast("float32", "float4_e2m1fn", [value])


@pytest.mark.parametrize("mode", MODES)
def test_rounding_to_floats_is_exact(mode: str) -> None:
    low, high = np.float32(0.1), np.nextafter(np.float32(0.1), np.float32(0))
    low, high = min(low, high), max(low, high)  # 0.1 lies between them, nearer to the higher
    up = low if mode in ("towards-zero", "towards-negative") else high
    down = -low if mode in ("towards-zero", "towards-positive") else -high
    assert cast("float64", "float32", [0.1, -0.1], rounding=mode) == [float(up), float(down)]


def test_large_integers_become_the_float_that_the_rounding_says() -> None:
    tie = 2**24 + 1
    assert cast("int64", "float32", [tie], rounding="nearest-even") == [2**24]
    assert cast("int64", "float32", [tie, -tie], rounding="nearest-away") == [2**24 + 2, -(2**24) - 2]
    assert cast("int64", "float32", [2**63 - 1], rounding="towards-zero") == [2.0**63 - 2.0**39]


def test_the_map_is_asked_before_anything_else() -> None:
    table = {"encode": [[1.5, 100], [-1e9, -100]]}
    assert cast("float64", "int8", [1.5, -1e9, 2.0], scalar_map=table) == [100, -100, 2]


def test_decoding_follows_the_same_rules() -> None:
    codec = CastValue(data_type="float64", scalar_map={"decode": [["NaN", -1]]})
    spec = spec_of("int8", (2,))
    assert codec.decode(np.array([3.0, NAN]), spec).tolist() == [3, -1]
    with pytest.raises(CodecError):
        codec.decode(np.array([300.0, 0.0]), spec)


def test_the_fill_value_must_survive() -> None:
    assert CastValue(data_type="int8").encoded_spec(spec_of("float64", (1,), 3.0)).fill == 3
    with pytest.raises(CodecError, match="does not survive"):
        CastValue(data_type="int8").encoded_spec(spec_of("float64", (1,), 3.5))
    with pytest.raises(CodecError):
        CastValue(data_type="int8").encoded_spec(spec_of("float64", (1,), NAN))
    table = {"encode": [["NaN", -1]], "decode": [[-1, "NaN"]]}
    assert CastValue(data_type="int8", scalar_map=table).encoded_spec(spec_of("float64", (1,), NAN)).fill == -1


@pytest.mark.parametrize(
    ("source", "target"), [("bool", "int8"), ("int8", "bool"), ("float32", "complex64"), ("string", "int8")]
)
def test_only_integers_and_floats(source: str, target: str) -> None:
    with pytest.raises(CodecError, match="cannot convert"):
        CastValue(data_type=target).encoded_spec(spec_of(source, (1,)))


def test_only_integers_wrap() -> None:
    with pytest.raises(CodecError, match="wrap only to integers"):
        CastValue(data_type="float32", out_of_range="wrap").encoded_spec(spec_of("float64", (1,)))


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"data_type": "int99"},
        {"data_type": "int8", "rounding": "up"},
        {"data_type": "int8", "out_of_range": "ignore"},
        {"data_type": "int8", "scalar_map": {"encode": [1]}},
        {"data_type": "int8", "scalar_map": {"both": []}},
    ],
)
def test_wrong_members_are_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        CastValue.from_json(configuration)


def test_a_map_of_values_that_the_types_do_not_have_is_refused() -> None:
    for table in ({"encode": [[0, 300]]}, {"decode": [["NaN", 0]]}):
        with pytest.raises(CodecError, match="scalar_map"):
            CastValue(data_type="int8", scalar_map=table).encoded_spec(spec_of("float64", (1,)))
