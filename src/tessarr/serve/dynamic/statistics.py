"""Compute statistics of numbers: what a viewer needs for limits of colours and a histogram. Pure."""

from __future__ import annotations

import numpy as np

from tessarr.serve.dynamic.exports import json_of
from tessarr.serve.dynamic.refusal import malformed
from tessarr.types import AnyArray, JSONObject

PERCENTILES = (1, 2, 25, 50, 75, 98, 99)


def statistics(values: AnyArray, bins: int) -> JSONObject:
    """Return count, minimum, maximum, mean, standard deviation, percentiles and histogram of the finite numbers.

    Of complex numbers, those of their magnitude. Raises `Refusal` for elements that are not numbers.

    >>> statistics(np.array([1.0, np.nan, 3.0]), 2)["mean"]
    2.0
    """
    if values.dtype.kind == "c":
        values = np.abs(values)
    if values.dtype.kind not in "biuf" and not np.issubdtype(values.dtype, np.number):
        raise malformed(f"elements of type {values.dtype} are not numbers")
    flat = values.ravel()
    if values.dtype.kind not in "biu":
        flat = flat[np.isfinite(flat)]
    result: JSONObject = {"count": int(values.size), "finite": int(flat.size)}
    if not flat.size:
        return {**result, "min": None, "max": None, "mean": None, "std": None, "percentiles": {}, "histogram": None}
    low, high = flat.min(), flat.max()
    floats = flat.astype(np.float64)
    heights, edges = np.histogram(floats, bins=bins, range=_span(float(low), float(high)))
    return {
        **result,
        "min": json_of(low),
        "max": json_of(high),
        "mean": json_of(float(floats.mean())),
        "std": json_of(float(floats.std())),
        "percentiles": {
            str(number): json_of(float(value))
            for number, value in zip(PERCENTILES, np.percentile(floats, PERCENTILES), strict=True)
        },
        "histogram": {"edges": [json_of(edge) for edge in edges.tolist()], "counts": heights.tolist()},
    }


def _span(low: float, high: float) -> tuple[float, float]:
    """Return an interval that has a length even where all numbers are equal."""
    return (low, high) if high > low else (low - 0.5, high + 0.5)
