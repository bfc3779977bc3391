from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessarr.codecs import BitRoundCodec
from tessarr.codecs.numcodecs import BitRound
from tessarr.errors import CodecError, MetadataValidationError
from tests.codecs.samples import spec_of


def rounded(data_type: str, keepbits: int, values: list[Any]) -> list[Any]:
    spec = spec_of(data_type, (len(values),))
    found: list[Any] = BitRoundCodec(keepbits).encode(np.array(values, spec.dtype), spec).tolist()
    return found


def test_halves_go_to_even() -> None:
    # With one bit of mantissa the numbers from 4 to 8 are 4, 6, 8.
    assert rounded("float32", 1, [4.9, 5.0, 5.1, 6.9, 7.0, 7.1, -5.0]) == [4, 4, 6, 6, 8, 8, -4]


@pytest.mark.parametrize("data_type", ["float16", "float32", "float64", "bfloat16", "complex64"])
def test_special_values_stay_as_they_are(data_type: str) -> None:
    values = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0]
    spec = spec_of(data_type, (5,))
    chunk = np.array(values, spec.dtype)
    assert BitRoundCodec(2).encode(chunk, spec).tobytes() == chunk.tobytes()


def test_a_nan_whose_payload_would_carry_into_infinity_stays() -> None:
    spec = spec_of("float32", (2,))
    chunk = np.array([0x7F800001, 0x7FFFFFFF], np.uint32).view(np.float32)
    assert BitRoundCodec(3).encode(chunk, spec).tobytes() == chunk.tobytes()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 23))
def test_the_error_of_a_float_is_at_most_half_a_step(value: float, keepbits: int) -> None:
    got = rounded("float32", keepbits, [value])[0]
    if np.isfinite(got) and abs(value) >= 2.0**-126:
        assert abs(got - value) <= abs(value) * 2.0 ** -(keepbits + 1)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 64))
def test_an_integer_keeps_so_many_bits_from_its_highest(value: int, keepbits: int) -> None:
    got = rounded("int64", keepbits, [value])[0]
    length = abs(value).bit_length()
    assert abs(got - value) <= (1 << max(length - keepbits, 0)) - 1
    assert abs(got) % (1 << max(length - keepbits, 0)) == 0


def test_integers_round_half_to_even_and_never_past_the_largest() -> None:
    assert rounded("uint8", 3, [0, 1, 7, 8, 9, 10, 11, 13, 255]) == [0, 1, 7, 8, 8, 10, 12, 12, 224]
    assert rounded("int8", 3, [127, -128, -9, -1]) == [112, -128, -8, -1]


def test_not_a_time_stays() -> None:
    spec = spec_of({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, (2,))
    chunk = np.array(["NaT", "2020-01-01"], "M8[s]")
    assert np.isnat(BitRoundCodec(4).encode(chunk, spec)[0])


def test_the_fill_value_is_rounded_with_the_data() -> None:
    assert BitRoundCodec(1).encoded_spec(spec_of("float32", (1,), 5.1)).fill == 6


@pytest.mark.parametrize("configuration", [{}, {"keepbits": -1}, {"keepbits": 2.0}, {"keepbits": 1, "mode": "floor"}])
def test_wrong_members_are_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(MetadataValidationError):
        BitRoundCodec.from_json(configuration)


@pytest.mark.parametrize(("data_type", "keepbits"), [("string", 3), ("bool", 3), ("int32", 0)])
def test_what_cannot_be_rounded_is_refused(data_type: str, keepbits: int) -> None:
    with pytest.raises(CodecError):
        BitRoundCodec(keepbits).encoded_spec(spec_of(data_type, (1,)))


def test_the_name_of_numcodecs_takes_floats_only() -> None:
    for data_type, keepbits in (("int32", 3), ("float32", 24)):
        with pytest.raises(CodecError):
            BitRound(keepbits=keepbits).encoded_spec(spec_of(data_type, (1,)))
