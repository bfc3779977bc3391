"""The order of the transpose codec is checked where it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.codecs import TransposeCodec
from tessarr.errors import MetadataValidationError


@pytest.mark.parametrize(
    "order", [(3, 2, 1), (0, 0), (0, -1), (0, 2), (0.0, 1.0), (True, False), "F", "C", 1, None, ("0",)]
)
def test_what_is_no_permutation_is_refused(order: Any) -> None:
    with pytest.raises(MetadataValidationError, match="order: must be a") as raised:
        TransposeCodec(order=order)
    assert raised.value.problems[0].loc == ("order",)


@pytest.mark.parametrize("order", [[1, 0], (np.int64(1), np.int8(0)), np.array([1, 0]), range(1, -1, -1), iter([1, 0])])
def test_any_sequence_of_integers_is_taken(order: Any) -> None:
    codec = TransposeCodec(order=order)
    assert codec.order == (1, 0)
    assert all(type(axis) is int for axis in codec.order)
    z = tessarr.create_array({}, shape=(2, 3), dtype="i4", filters=[codec])
    z[...] = np.arange(6).reshape(2, 3)
    assert z[...].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_legacy_constant_is_read() -> None:
    assert TransposeCodec.from_json({"order": "F"}).order == "F"
