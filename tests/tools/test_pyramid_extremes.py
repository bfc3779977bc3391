"""Pyramids of the largest and smallest numbers that a data type has, and of missing values that it has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools.pyramid import build_pyramid
from tessarr.tools.pyramid.reduce import reduce

INTEGERS = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]


@pytest.mark.parametrize("method", ["mean", "max", "mode", "nearest", "gaussian"])
@pytest.mark.parametrize("dtype", [*INTEGERS, ">u8", ">i8"])
@pytest.mark.parametrize("end", ["min", "max"])
def test_the_last_integer_stays_within_what_the_type_holds(dtype: str, end: str, method: Any) -> None:
    last = getattr(np.iinfo(dtype), end)
    found = reduce(np.full((7, 5), last, dtype), (2, 2), method)
    assert found.dtype == dtype
    if method == "gaussian" and dtype[-1] == "8":  # reckoned in float64: exact to a relative 1e-15
        away = max(abs(int(value) - last) for value in found.ravel().tolist())
        assert away <= 4096
    else:
        np.testing.assert_array_equal(found, np.full(found.shape, last, dtype))


@pytest.mark.parametrize("method", ["mean", "max", "mode", "nearest", "gaussian"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_float_does_not_become_infinite(dtype: str, sign: int, method: Any) -> None:
    values = np.full((7, 5), sign * np.finfo(dtype).max, dtype)
    np.testing.assert_allclose(reduce(values, (2, 2), method), values[:4, :3], rtol=1e-3 if dtype == "f2" else 1e-6)


@pytest.mark.parametrize("method", ["mean", "max", "gaussian"])
def test_infinity_and_nan_stay_what_they_are(method: Any) -> None:
    with np.errstate(invalid="ignore"):
        found = reduce(np.array([np.inf, 1.0, -np.inf, -np.inf, np.nan, 1.0, np.finfo("f8").max, 1.0]), (2,), method)
    if method == "gaussian":  # which reaches over its neighbours
        assert np.isnan(found[1:3]).all()
    else:
        expected = np.inf, -np.inf, np.nan
        np.testing.assert_array_equal(found[:3], expected)
        assert np.isfinite(found[3])


@pytest.mark.parametrize("missing", [300, -1, 0.5])
def test_a_missing_value_that_the_type_cannot_hold_is_refused(missing: Any) -> None:
    group = tessarr.create_group(MemoryStore())
    group.create_array("0", data=np.zeros((4, 4), "u1"))
    with pytest.raises(ValueError, match="uint8 cannot hold"):
        build_pyramid(group, "0", levels=1, missing=missing)
    build_pyramid(group, "0", levels=1, missing=float("nan"))


def test_an_array_that_is_short_enough_is_its_only_level(tmp_path: Path) -> None:
    group = tessarr.create_group(tmp_path)
    group.create_array("a", data=np.zeros((12, 10)))
    assert [level.name for level in build_pyramid(group, "a")] == ["a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "zarr.json"]
    described: Any = group.attrs["multiscales"]
    assert [dataset["path"] for dataset in described[0]["datasets"]] == ["a"]
