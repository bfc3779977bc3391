"""Ask whether a data type is an integer or a float, and for its range, for codecs that compute."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

import numpy as np

from tessarr.dtypes.base import DataType
from tessarr.types import AnyDType


def number_kind(data_type: DataType) -> Literal["integer", "float"] | None:
    """Return ``"integer"`` or ``"float"``, types of `ml_dtypes` included; ``None`` for any other type.

    ``float8_e8m0fnu`` gives ``None``: it holds powers of two, without zero and signs, and cannot be computed with.
    """
    if data_type.name == "float8_e8m0fnu":
        return None
    if re.fullmatch(r"u?int\d+", data_type.name):
        return "integer"
    return "float" if re.fullmatch(r"b?float\d+(_\w+)?", data_type.name) else None


def limits(data_type: DataType) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type."""
    bits = int(data_type.name.lstrip("uint"))
    return (0, (1 << bits) - 1) if data_type.name.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def is_foreign(dtype: AnyDType) -> bool:
    """Return whether the dtype is one of `ml_dtypes`, which some NumPy functions do not support."""
    return dtype.isbuiltin == 2


@cache
def largest(dtype: AnyDType) -> float:
    """Return the largest finite value of a float dtype."""
    if not is_foreign(dtype):
        return float(np.finfo(dtype).max)
    every = np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}").view(dtype).astype(np.float64)
    return float(every[np.isfinite(every)].max())


@cache
def holds(dtype: AnyDType, value: float) -> bool:
    """Return whether a float dtype has the special `value` (infinity or NaN)."""
    with np.errstate(all="ignore"):
        cast = np.array([value]).astype(dtype).astype(np.float64)[0]
    return bool(np.isnan(cast) if np.isnan(value) else cast == value)
