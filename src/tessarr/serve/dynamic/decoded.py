"""Decode stored values by CF: packed numbers, missing values, times. Values of arrays without such attributes stay."""

from __future__ import annotations

import numpy as np

from tessarr.conventions import cftime
from tessarr.conventions.cf import Packing
from tessarr.conventions.xarray import DIMENSIONS
from tessarr.core.array import Array
from tessarr.types import AnyArray


def packing_of(array: Array) -> Packing | None:
    """Return how the numbers of an array are packed; ``None`` where its attributes are not CF's, or are malformed."""
    if array.dtype.kind not in "biufc" or array._metadata.data_type.may_be_missing:
        return None
    attributes = array._metadata.attributes
    own_fill = array.fill_value if DIMENSIONS in attributes else None  # where xarray keeps `_FillValue` in v2
    try:
        return Packing.read(attributes, kind=array.dtype.kind, zarr_format=array.zarr_format, fill_value=own_fill)
    except (ValueError, TypeError):
        return None


def time_units(array: Array) -> tuple[str, str | None] | None:
    """Return ``units`` and ``calendar`` of an array of times; ``None`` for any other array."""
    attributes = array._metadata.attributes
    units, calendar = attributes.get("units"), attributes.get("calendar")
    if (
        array.dtype.kind not in "iuf"
        or array._metadata.data_type.may_be_missing
        or not isinstance(units, str)
        or not cftime.is_time(units)
    ):
        return None
    return units, calendar if isinstance(calendar, str) else None


def decoded(array: Array, values: AnyArray) -> AnyArray:
    """Decode values of an array: to floats with NaN, to ``datetime64`` (text for calendars that NumPy lacks), or unchanged."""
    times = time_units(array)
    packing = packing_of(array)
    if times is not None:
        missing = np.zeros(values.shape, bool) if packing is None else packing.mask(values)
        numbers = values if packing is None or not packing.packed else packing.decode(values)
        try:
            return _times(numbers, missing, *times)
        except (ValueError, OverflowError):
            return values
    if packing is None:
        return values
    return packing.decode(values)


def _times(numbers: AnyArray, missing: AnyArray, units: str, calendar: str | None) -> AnyArray:
    if numbers.dtype.kind == "f":
        missing = missing | ~np.isfinite(numbers)
    known = np.where(missing, np.zeros((), numbers.dtype), numbers)
    try:
        moments = cftime.datetimes(known, units, calendar)
        return np.where(missing, np.datetime64("NaT"), moments)
    except ValueError:  # a calendar of climate models, or dates before NumPy's calendar
        dates = cftime.decode(known, units, calendar)
    seconds = dates["microsecond"] // 1_000_000
    texts = [
        "" if gone else f"{date['year']:04d}-{date['month']:02d}-{date['day']:02d}T{_clock(int(second))}"
        for date, second, gone in zip(dates.ravel(), seconds.ravel(), missing.ravel(), strict=True)
    ]
    return np.array(texts, dtype=str).reshape(numbers.shape)


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
