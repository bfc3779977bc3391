"""CF time: numbers since a reference time, in the calendars of climate models.

>>> Units.parse("hours since 1900-01-01 00:00:0.0").unit
'hours'
>>> decode([0, 1.5], "days since 2000-02-28", "noleap").tolist()
[(2000, 2, 28, 0), (2000, 3, 1, 43200000000)]
>>> datetimes([60], "days since 2000-01-01")
array(['2000-03-01T00:00:00.000000'], dtype='datetime64[us]')

Values are exact to the microsecond; floats are rounded to the nearest one. (Whole nanoseconds are exact as datetime64.)
The calendar "standard" (the default) is Julian before 1582-10-15 and Gregorian from then on; "tai" (CF 1.12) is counted
like "proleptic_gregorian"; "utc", which needs a list of leap seconds, is refused. Every calendar has a year 0. Months and
years as units have no fixed length and are refused.

Source: CF 1.11, section 4.4; day counts after "chrono-compatible low-level date algorithms" (H. Hinnant, public domain).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessarr.types import JSON, AnyArray, JSONObject

CALENDARS = {
    "standard": "standard",
    "gregorian": "standard",
    "proleptic_gregorian": "proleptic_gregorian",
    "julian": "julian",
    "noleap": "noleap",
    "365_day": "noleap",
    "all_leap": "all_leap",
    "366_day": "all_leap",
    "360_day": "360_day",
    "tai": "proleptic_gregorian",
}
"""Every name of a calendar → its canonical name."""
_UNITS = {
    "week": 604_800_000_000, "day": 86_400_000_000, "d": 86_400_000_000, "hour": 3_600_000_000, "hr": 3_600_000_000,
    "h": 3_600_000_000, "minute": 60_000_000, "min": 60_000_000, "second": 1_000_000, "sec": 1_000_000, "s": 1_000_000,
    "millisecond": 1000, "millisec": 1000, "msec": 1000, "ms": 1000, "microsecond": 1, "microsec": 1, "us": 1,
    "µs": 1, "nanosecond": 1, "nanosec": 1, "ns": 1,
}  # fmt: skip
"""Microseconds in each unit, in the singular; of nanoseconds, in a thousand."""
_NANOSECONDS = ("nanosecond", "nanoseconds", "nanosec", "nanosecs", "ns")
_DAY = 86_400_000_000
_FORM = re.compile(
    r"\s*([A-Za-zµ]+)\s+since\s+([+-]?\d{1,6})-(\d{1,2})-(\d{1,2})"
    r"(?:(?:T|\s+)(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(\.\d*)?)?(?:\s+(\d{1,2}(?::?\d{2})?))?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?\s*",
    re.IGNORECASE,
)
_MONTHS = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)
_MONTHS_LEAP = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366)
_SWITCH = -141427
"""1582-10-15 (Gregorian) in days from 1970-01-01; the day before it is 1582-10-04 (Julian)."""

Dates = np.dtype([("year", "i8"), ("month", "i8"), ("day", "i8"), ("microsecond", "i8")])
"""A date of any calendar, and the microseconds since its midnight."""


class Units(NamedTuple):
    """The meaning of a ``units`` attribute."""

    unit: str
    microseconds: int
    """Microseconds in one unit."""
    date: tuple[int, int, int]
    """Year, month, day of the reference time."""
    offset: int
    """Microseconds, in UTC, from that day's midnight to the reference time."""
    parts: int = 1
    """Number of units in `microseconds`: 1000 nanoseconds are one."""

    @classmethod
    def parse(cls, text: str) -> Units:
        """Parse units. Raises `ValueError` for a text that is not a unit of time since a reference time."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"not a time unit: {text!r}; expected like 'days since 1970-01-01 00:00:00'")
        unit = found[1].lower()
        length = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if length is None:
            raise ValueError(f"{found[1]!r} in {text!r} has no fixed length, or is not a unit of time")
        hour, minute, second = (int(found[i] or 0) for i in (5, 6, 7))
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError(f"there is no such time of day in {text!r}")
        fraction = round(float(found[8] or 0) * 1_000_000) if found[8] not in (None, ".") else 0
        offset = (hour * 3600 + minute * 60 + second) * 1_000_000 + fraction - _zone(found[9] or found[10])
        date = (int(found[2]), int(found[3]), int(found[4]))
        return cls(found[1], length, date, offset, 1000 if unit in _NANOSECONDS else 1)


def _zone(text: str | None) -> int:
    if text is None or text.upper() in ("Z", "UTC", "GMT"):
        return 0
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").replace(":", "")
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    return sign * (hours * 60 + minutes) * 60_000_000


def is_time(units: object) -> bool:
    """Return whether a ``units`` attribute counts time since a reference time."""
    return isinstance(units, str) and re.match(r"\s*[A-Za-zµ]+\s+since\s", units) is not None


def write(units: str, calendar: str | None = None, attributes: Mapping[str, JSON] | None = None) -> JSONObject:
    """Make the attributes of an array of times: ``units``, and ``calendar`` if given; other attributes stay.

    >>> write("days since 2000-01-01", "noleap")
    {'units': 'days since 2000-01-01', 'calendar': 'noleap'}

    Raises `ValueError` for units or a calendar that cannot be read again, and for a reference day not in the calendar.
    """
    _first_day(Units.parse(units), calendar_of(calendar))
    own = {name: value for name, value in (attributes or {}).items() if name not in ("units", "calendar")}
    return {**own, "units": units, **({"calendar": calendar} if calendar is not None else {})}


def calendar_of(name: str | None) -> str:
    """Return the canonical name of an attribute ``calendar``. Raises `ValueError` for an unknown calendar."""
    found = CALENDARS.get((name or "standard").lower())
    if found is None and str(name).lower() == "utc":
        raise ValueError("the calendar 'utc' counts leap seconds, which needs a list of them; use cftime")
    if found is None:
        raise ValueError(f"unknown calendar {name!r}; known: {', '.join(CALENDARS)}")
    return found


def decode(values: npt.ArrayLike, units: str, calendar: str | None = None) -> AnyArray:
    """Decode numbers in `units` to dates (dtype `Dates`). Raises `ValueError`, also for NaN."""
    days, rest = _parse_times(values, units, calendar)
    out = np.empty(days.shape, Dates)
    out["year"], out["month"], out["day"] = date_of(days, calendar_of(calendar))
    out["microsecond"] = rest
    return out


def _parse_times(
    values: npt.ArrayLike, units: str, calendar: str | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    parsed = Units.parse(units)
    start = _first_day(parsed, calendar_of(calendar))
    numbers = np.asarray(values)
    if numbers.dtype.kind == "f":
        if not np.isfinite(numbers).all():
            raise ValueError("NaN and infinity are not times; mask missing values first")
        whole = np.floor(numbers / parsed.parts).astype(np.int64)
        fraction = np.rint((numbers / parsed.parts - whole) * parsed.microseconds).astype(np.int64)
    else:
        whole, part = np.divmod(_whole(numbers), parsed.parts)
        fraction = np.rint(part / parsed.parts).astype(np.int64)
    per_day = _DAY // parsed.microseconds if parsed.microseconds <= _DAY else 0
    if per_day:  # days and the remainder separately: microseconds alone would overflow after 292,000 years
        days, part = np.divmod(whole, per_day)
        rest = part * parsed.microseconds + fraction + parsed.offset
    else:
        days, rest = whole * (parsed.microseconds // _DAY), np.asarray(fraction + parsed.offset, np.int64)
    more, rest = np.divmod(rest, _DAY)
    return np.asarray(start + days + more, np.int64), np.asarray(rest + np.zeros_like(days), np.int64)


def _whole(numbers: AnyArray) -> npt.NDArray[np.int64]:
    """Convert integers to int64. Raises `ValueError` for larger integers, and for other types."""
    if numbers.dtype.kind not in "iu" or (numbers.dtype == np.uint64 and numbers.size and numbers.max() >= 1 << 63):
        raise ValueError(f"times are integers up to 2**63 or floats, got {numbers.dtype}")
    return numbers.astype(np.int64)


def datetimes(values: npt.ArrayLike, units: str, calendar: str | None = None) -> npt.NDArray[np.datetime64]:
    """Decode numbers in `units` to ``datetime64[us]``; in nanoseconds to ``datetime64[ns]``, exactly.

    Raises `ValueError` for calendars that NumPy does not have, and for dates of the standard calendar before 1582-10-15,
    which have other names in NumPy's calendar.
    """
    name = calendar_of(calendar)
    if name not in ("standard", "proleptic_gregorian"):
        raise ValueError(f"dates of the calendar {name!r} are not NumPy dates; use decode")
    days, rest = _parse_times(values, units, calendar)
    if name == "standard" and days.size and days.min() < _SWITCH:
        raise ValueError("dates before 1582-10-15 of the standard calendar are Julian; use decode")
    result: npt.NDArray[np.datetime64] = days.astype("datetime64[D]").astype("datetime64[us]")
    moved: npt.NDArray[np.datetime64] = result + rest.astype("timedelta64[us]")
    numbers, parts = np.asarray(values), Units.parse(units).parts
    if parts == 1 or numbers.dtype.kind not in "iu":
        return moved
    first = datetimes(np.zeros((), np.int64), units.replace(Units.parse(units).unit, "microseconds", 1), calendar)
    exact: npt.NDArray[np.datetime64] = first.astype("datetime64[ns]") + numbers.astype("timedelta64[ns]")
    return exact


def encode(dates: npt.ArrayLike, units: str, calendar: str | None = None) -> AnyArray:
    """Encode dates (``datetime64`` values, or the dtype `Dates`) as numbers in `units`.

    int64 where every date falls on a whole unit, else float64.
    """
    parsed, name = Units.parse(units), calendar_of(calendar)
    start = _first_day(parsed, name)
    given = np.asarray(dates)
    if given.dtype.kind == "M":
        if np.isnat(given).any():
            raise ValueError("NaT is not a time; store the missing value for it")
        moments = given.astype("datetime64[us]").astype(np.int64)
        days, rest = np.divmod(moments, _DAY)
        if name not in ("standard", "proleptic_gregorian") or (
            name == "standard" and days.size and days.min() < _SWITCH
        ):
            raise ValueError(f"NumPy dates are not dates of the calendar {name!r}; use the dtype Dates")
    else:
        days, rest = _existing_day(given["year"], given["month"], given["day"], name), given["microsecond"]
    rest = rest - parsed.offset
    if parsed.parts > 1:
        finer = given.astype("datetime64[ns]").astype(np.int64) % 1000 if given.dtype.kind == "M" else 0
        return np.asarray(((days - start) * _DAY + rest) * parsed.parts + finer)
    if parsed.microseconds <= _DAY:
        whole, left = np.divmod(rest, parsed.microseconds)
        whole = whole + (days - start) * (_DAY // parsed.microseconds)
    else:
        whole, left = np.divmod((days - start) * _DAY + rest, parsed.microseconds)
    return np.asarray(whole) if not np.any(left) else np.asarray(whole + left / parsed.microseconds)


# -- days and dates ----------------------------------------------------------------------------------------------------

_Ints = npt.NDArray[np.int64]


def _first_day(units: Units, calendar: str) -> _Ints:
    year, month, day = (np.asarray(part, np.int64) for part in units.date)
    return _existing_day(year, month, day, calendar)


def _existing_day(year: _Ints, month: _Ints, day: _Ints, calendar: str) -> _Ints:
    """Return `day_of` for dates in the calendar. Raises `ValueError` naming the first date that is not in it."""
    wrong = np.asarray((month < 1) | (month > 12) | (day < 1) | (day > 31))
    days = day_of(year, np.clip(month, 1, 12), day, calendar)
    for stated, real in zip((year, month, day), date_of(days, calendar), strict=True):
        wrong = wrong | (stated != real)
    if wrong.any():
        at = int(np.argmax(wrong))
        first = "-".join(f"{int(part.reshape(-1)[at]):02d}" for part in (year, month, day))
        raise ValueError(f"the calendar {calendar!r} has no day {first}")
    return days


def day_of(year: _Ints, month: _Ints, day: _Ints, calendar: str) -> _Ints:
    """Count days from 1970-01-01 of the calendar (for Julian and Gregorian dates: from the same day)."""
    if calendar == "360_day":
        return np.asarray((year - 1970) * 360 + (month - 1) * 30 + day - 1)
    if calendar in ("noleap", "all_leap"):
        table = np.array(_MONTHS if calendar == "noleap" else _MONTHS_LEAP)
        return np.asarray((year - 1970) * int(table[-1]) + table[month - 1] + day - 1)
    gregorian = _civil_day(year, month, day, gregorian=True)
    if calendar == "proleptic_gregorian":
        return gregorian
    julian = _civil_day(year, month, day, gregorian=False)
    return julian if calendar == "julian" else np.where(gregorian >= _SWITCH, gregorian, julian)


def date_of(days: _Ints, calendar: str) -> tuple[_Ints, _Ints, _Ints]:
    """Convert days to year, month, day: the inverse of `day_of`."""
    if calendar == "360_day":
        year, rest = np.divmod(days, 360)
        month, day = np.divmod(rest, 30)
        return year + 1970, month + 1, day + 1
    if calendar in ("noleap", "all_leap"):
        table = np.array(_MONTHS if calendar == "noleap" else _MONTHS_LEAP)
        year, rest = np.divmod(days, int(table[-1]))
        month = np.searchsorted(table, rest, side="right")
        return year + 1970, month, rest - table[month - 1] + 1
    if calendar == "standard":
        pairs = zip(_civil_date(days, gregorian=True), _civil_date(days, gregorian=False), strict=True)
        year, month, day = (np.where(days >= _SWITCH, new, old) for new, old in pairs)
        return year, month, day
    return _civil_date(days, gregorian=calendar == "proleptic_gregorian")


def _civil_day(year: _Ints, month: _Ints, day: _Ints, *, gregorian: bool) -> _Ints:
    """Count days of a year that begins in March, so that the leap day is the last one."""
    year = year - (month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = year * 365 + year // 4 + day_of_year
    return np.asarray(days - year // 100 + year // 400 - 719468 if gregorian else days - 719470)


def _civil_date(days: _Ints, *, gregorian: bool) -> tuple[_Ints, _Ints, _Ints]:
    if gregorian:
        era, rest = np.divmod(days + 719468, 146097)
        of_era = (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365
        rest = rest - (365 * of_era + of_era // 4 - of_era // 100)
        year = era * 400 + of_era
    else:
        era, rest = np.divmod(days + 719470, 1461)
        of_era = (rest - rest // 1460) // 365
        rest = rest - 365 * of_era
        year = era * 4 + of_era
    shifted = (5 * rest + 2) // 153
    day = rest - (153 * shifted + 2) // 5 + 1
    month = np.where(shifted < 10, shifted + 3, shifted - 9)
    return year + (month <= 2), month, day


def as_text(dates: AnyArray) -> Sequence[str]:
    """Format dates of the dtype `Dates` as ISO text."""
    return [f"{y:04d}-{m:02d}-{d:02d}T{u // 3_600_000_000:02d}:{u // 60_000_000 % 60:02d}:{u // 1_000_000 % 60:02d}"
            for y, m, d, u in dates.reshape(-1).tolist()]  # fmt: skip
