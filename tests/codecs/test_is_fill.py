"""The test for "nothing but fill value" compares bits, of every kind of element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessarr.codecs.is_fill import is_fill


@pytest.mark.parametrize(
    ("dtype", "fill", "other"),
    [
        ("S3", b"a", b"b"),
        ("S3", b"", b"x"),
        ("U4", "a", "ab"),
        ("U4", "", "x"),
        ("i4", 7, 8),
        ("f8", 0.0, -0.0),
        ("M8[s]", np.datetime64("NaT", "s"), np.datetime64(0, "s")),
        ("c16", 1j, 1),
        ([("a", "i2"), ("b", "S3")], (1, b"q"), (1, b"r")),
        (np.dtypes.StringDType(), "x", "y"),
        (object, b"x", b"y"),
    ],
)
def test_a_chunk_of_fill_is_found_and_one_other_element_is_enough(dtype: Any, fill: Any, other: Any) -> None:
    scalar = np.empty((), dtype)
    scalar[()] = fill
    chunk = np.empty((3, 4), dtype)
    chunk[...] = scalar
    assert is_fill(chunk, scalar)
    assert is_fill(chunk[::2, ::3], scalar)
    assert is_fill(np.asfortranarray(chunk), scalar)
    assert is_fill(chunk[:, 1], scalar)
    assert is_fill(np.broadcast_to(scalar, (3,)), scalar)
    for place in [(0, 0), (2, 3), (1, 2)]:
        changed = chunk.copy()
        changed[place] = other
        assert not is_fill(changed, scalar)
        assert is_fill(changed[:, place[1]], scalar) is False


def test_ragged_rows_are_compared_as_arrays() -> None:
    fill = np.empty((), object)
    fill[()] = np.array([], "i4")
    chunk = np.empty(2, object)
    chunk[0], chunk[1] = np.array([], "i4"), np.array([], "i4")
    assert is_fill(chunk, fill)
    chunk[1] = np.array([1, 2], "i4")
    assert not is_fill(chunk, fill)


def test_another_nan_is_not_the_fill_value() -> None:
    fill = np.array(0x7FC00000, "u4").view("f4")
    assert is_fill(np.full(4, 0x7FC00000, "u4").view("f4"), fill)
    assert not is_fill(np.full(4, 0x7FC00001, "u4").view("f4"), fill)


@pytest.mark.parametrize("dtype", [np.dtypes.StringDType(), object])
@pytest.mark.parametrize("fill", ["", "x", "a\0"])
def test_many_texts_are_compared_to_the_last_byte(dtype: Any, fill: str) -> None:
    scalar = np.empty((), dtype)
    scalar[()] = fill
    for count in (1, 2, 256, 257, 258, 600):
        chunk = np.full(count, scalar)
        assert is_fill(chunk, scalar)
        for other in (fill + "\0", fill + "y" * 20_000):
            chunk[-1] = other
            assert not is_fill(chunk, scalar)
            assert not is_fill(chunk[::-1], scalar)


def test_missing_texts_are_only_equal_to_each_other() -> None:
    dtype = np.dtypes.StringDType(na_object=None)
    missing, text = np.array(None, dtype), np.array("", dtype)
    assert is_fill(np.array([None, None], dtype), missing)
    assert not is_fill(np.array([None, ""], dtype), missing)
    assert not is_fill(np.array(["", None], dtype), text)
