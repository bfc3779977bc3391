"""Simulate two clients of which one copies, converts, renames, plans or follows, in random orders of their steps.

A number is a place in a shuffled list of such two in every world, of which each has sixteen schedules; after its end the
list begins again, with other schedules. `simulate` draws such clients rarely, and `pairs` comes to them last.
"""

from __future__ import annotations

from collections.abc import Iterator

from campaigns.simulate import judge
from campaigns.slices import Slice, repeated, timed

from tests.simulation import cases

SUMMARY = "two clients in random orders, of which one copies, converts, renames, plans or follows"


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Do numbers from `begin` on, for so long or up to `end`."""
    with cases.simulating():
        yield from timed(begin, seconds, _do, end)


def repeat(number: int) -> str | None:
    """Do one number again."""
    with cases.simulating():
        return repeated(number, _do)


def _do(number: int, part: Slice) -> None:
    part.count("schedules")
    if number % cases.BULK_SCHEDULES == 0:
        part.count("pairs")
    judge(number, part, cases.bulk_trial(number))
