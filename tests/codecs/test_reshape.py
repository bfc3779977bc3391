from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessarr.codecs import ReshapeCodec
from tessarr.errors import CodecError, MetadataValidationError
from tests.codecs.samples import numbers, spec_of


@pytest.mark.parametrize(
    ("shape", "given", "expected"),
    [
        ([[0, 1], [2], 3], (100, 50, 64, 3), (5000, 64, 3)),
        ([-1], (4, 5), (20,)),
        ([2, -1, [1]], (4, 5), (2, 2, 5)),
        ([[0], 1, [1]], (4, 5), (4, 1, 5)),
        ([[0], [], [1]], (4, 5), (4, 1, 5)),
        ([], (1, 1), ()),
        ([1], (), (1,)),
        ([[0], -1], (0, 3), (0, 0)),
    ],
)
def test_the_output_shape(shape: Any, given: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if given == (0, 3):
        with pytest.raises(CodecError):
            ReshapeCodec.from_json({"shape": shape}).output_shape(given)
    else:
        assert ReshapeCodec.from_json({"shape": shape}).output_shape(given) == expected


def test_the_order_of_elements_stays() -> None:
    chunk = np.asfortranarray(numbers("int32", (4, 5)))
    codec = ReshapeCodec(((0, 1),))
    spec = spec_of("int32", (4, 5))
    assert codec.encode(chunk, spec).tolist() == chunk.ravel().tolist()
    assert np.shares_memory(codec.encode(np.ascontiguousarray(chunk), spec), chunk) is False
    assert codec.decode(codec.encode(chunk, spec), spec).tolist() == chunk.tolist()


def test_no_copy_is_made_where_a_view_does() -> None:
    chunk = numbers("int32", (4, 5))
    assert np.shares_memory(ReshapeCodec((-1,)).encode(chunk, spec_of("int32", (4, 5))), chunk)


@pytest.mark.parametrize(
    "shape",
    [[[1], [0]], [[1, 0], 10], [[3, 4], 10, [0, 1]], [-1, -1], [0], [True], [-2], ["x"], [[-1]], [[0, 0]], "x", None],
)
def test_malformed_shapes_are_refused(shape: Any) -> None:
    with pytest.raises(MetadataValidationError):
        ReshapeCodec.from_json({"shape": shape})


@pytest.mark.parametrize(
    ("shape", "given"),
    [([[0], 3], (4, 5)), ([[0, 2], -1], (2, 3, 4)), ([[7], -1], (4, 5)), ([3, -1], (4, 5)), ([-1, [0]], (4, 5))],
)
def test_shapes_that_do_not_fit_are_refused(shape: Any, given: tuple[int, ...]) -> None:
    with pytest.raises(CodecError, match="does not fit"):
        ReshapeCodec.from_json({"shape": shape}).encoded_spec(spec_of("int32", given))
