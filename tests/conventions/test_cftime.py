"""Dates of every calendar, held against cftime (the library of netCDF4), and what is no date."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tessarr.conventions import cftime

REFERENCES = [
    ("days", "1970-01-01", 600_000), ("hours", "1582-10-04 03:30:00", 8_000_000), ("seconds", "0001-01-01", 10**10),
    ("minutes", "2000-02-28 12:00 +02:00", 4 * 10**8), ("days", "-0100-03-01", 900_000),
    ("milliseconds", "1999-12-30 23:59:59.5", 10**12), ("microseconds", "1970-01-01", 10**15),
    ("hours", "1900-1-1 0:0:0.0", 8_000_000), ("days", "0004-02-28", 100_000),
]  # fmt: skip


def theirs(values: Any, units: str, calendar: str) -> list[tuple[int, int, int, int]]:
    oracle = pytest.importorskip("cftime", reason="netCDF4 is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CF has no year 0 in some calendars; here all count it
        dates = oracle.num2date(values, units, calendar=calendar, has_year_zero=True)
    return [(d.year, d.month, d.day, ((d.hour * 60 + d.minute) * 60 + d.second) * 10**6 + d.microsecond) for d in dates]


@pytest.mark.parametrize("calendar", [name for name in cftime.CALENDARS if name != "tai"])
@pytest.mark.parametrize(("unit", "since", "reach"), REFERENCES)
def test_dates_are_those_of_cftime(calendar: str, unit: str, since: str, reach: int) -> None:
    units = f"{unit} since {since}"
    values = np.random.default_rng(0).integers(-reach // 3, reach, 150)
    dates = cftime.decode(values, units, calendar)
    assert dates.tolist() == theirs(values, units, calendar)
    np.testing.assert_array_equal(cftime.encode(dates, units, calendar), values)


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_fractions_are_those_of_cftime_to_the_microsecond(calendar: str) -> None:
    values = np.random.default_rng(1).uniform(-50_000, 80_000, 200)
    mine = cftime.decode(values, "days since 1970-01-01", calendar)
    for own, (year, month, day, microsecond) in zip(mine.tolist(), theirs(values, "days since 1970-01-01", calendar)):
        assert own[:3] == (year, month, day)
        assert abs(own[3] - microsecond) <= 1


@pytest.mark.parametrize("calendar", list(cftime.CALENDARS))
def test_every_day_of_eight_centuries_follows_the_one_before(calendar: str) -> None:
    values = np.arange(-300_000, 10_000)
    dates = cftime.decode(values, "days since 2000-01-01", calendar)
    assert len(np.unique(dates)) == len(values)
    starts = dates["day"] == 1
    assert starts[1:][dates["month"][1:] != dates["month"][:-1]].all()
    np.testing.assert_array_equal(cftime.encode(dates, "days since 2000-01-01", calendar), values)


def test_the_day_after_4_october_1582_is_the_15th() -> None:
    dates = cftime.decode([0, 1], "days since 1582-10-04")
    assert [tuple(date)[:3] for date in dates.tolist()] == [(1582, 10, 4), (1582, 10, 15)]


@pytest.mark.parametrize(
    ("since", "calendar"),
    [
        ("2000-13-01", "standard"), ("2000-00-01", "noleap"), ("2000-13-01", "360_day"), ("2001-02-29", "standard"),
        ("2000-02-29", "noleap"), ("1582-10-10", "standard"), ("1999-12-31", "360_day"), ("2000-01-00", "julian"),
        ("2000-01-01 24:00", "standard"), ("2000-01-01 12:61:00", "standard"),
    ],
)  # fmt: skip
def test_a_day_or_time_that_a_calendar_does_not_have_is_refused(since: str, calendar: str) -> None:
    with pytest.raises(ValueError, match=r"no day|no such time"):
        cftime.decode([0], f"days since {since}", calendar)


@pytest.mark.parametrize(
    ("since", "calendar"),
    [("2000-02-30", "360_day"), ("2001-02-29", "all_leap"), ("1582-10-10", "julian"), ("1900-02-29", "julian")],
)
def test_a_day_that_only_some_calendars_have_is_one_there(since: str, calendar: str) -> None:
    date = cftime.decode([0], f"days since {since}", calendar).tolist()[0]
    assert date == (*map(int, since.split("-")), 0)


def test_dates_that_are_none_are_not_encoded() -> None:
    with pytest.raises(ValueError, match="no day 2001-02-30"):
        cftime.encode(np.array([(2000, 1, 1, 0), (2001, 2, 30, 0)], cftime.Dates), "days since 2000-01-01")
    with pytest.raises(ValueError, match="NaT"):
        cftime.encode(np.array(["NaT", "2000-01-02"], "M8[s]"), "days since 2000-01-01")


@pytest.mark.parametrize(
    ("units", "first"),
    [
        ("days since 2000-01-01 06", "2000-01-01T06:00:00"),
        ("days since 2000-01-01T06:30", "2000-01-01T06:30:00"),
        ("days since 2000-01-01 06Z", "2000-01-01T06:00:00"),
        ("days since 2000-01-01 -6", "2000-01-01T06:00:00"),
        ("seconds since 1992-10-8 15:15:42.5 -6:00", "1992-10-08T21:15:42"),
        ("days since 2000-01-01 12:00 5:30", "2000-01-01T06:30:00"),
        ("millisecs since 2000-01-01", "2000-01-01T00:00:00"),
        ("microsecs since 2000-01-01", "2000-01-01T00:00:00"),
    ],
)
def test_the_moment_that_is_counted_from_is_read_in_every_spelling(units: str, first: str) -> None:
    assert cftime.as_text(cftime.decode([0], units)) == [first]


def test_a_clock_without_colons_is_refused_and_not_taken_for_a_zone() -> None:
    with pytest.raises(ValueError, match="not a time unit"):
        cftime.decode([0], "days since 2000-01-01 0630")


def test_nanoseconds_are_exact_as_numpy_dates() -> None:
    units = "nanoseconds since 2000-01-01 00:00:01"
    moments = np.array(["2000-01-01T00:00:00.123456789", "1999-12-31T23:59:59.000000001", "2026-01-01"], "M8[ns]")
    numbers = cftime.encode(moments, units)
    assert numbers.dtype == np.int64
    assert numbers[0] == -876543211
    found = cftime.datetimes(numbers, units)
    assert found.dtype == "M8[ns]"
    np.testing.assert_array_equal(found, moments)
    assert cftime.decode(numbers, units)["microsecond"].tolist() == [123457, 86399 * 10**6, 0]
    assert cftime.decode([1700.0], units)["microsecond"].tolist() == [1000002]


def test_atomic_time_is_counted_without_leap_seconds_and_utc_is_refused() -> None:
    oracle = pytest.importorskip("cftime", reason="netCDF4 is not installed")
    if "tai" in getattr(oracle._cftime, "_valid_calendars", ()):
        assert theirs([10**9], "seconds since 1970-01-01", "tai")
    assert cftime.as_text(cftime.decode([10**9], "seconds since 1970-01-01", "tai")) == ["2001-09-09T01:46:40"]
    with pytest.raises(ValueError, match="leap seconds"):
        cftime.decode([0], "seconds since 1970-01-01", "utc")


@pytest.mark.parametrize("values", [np.array([2**63], "u8"), np.array([True]), np.array(["1"])])
def test_what_is_no_count_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="times are integers"):
        cftime.decode(values, "days since 2000-01-01")
