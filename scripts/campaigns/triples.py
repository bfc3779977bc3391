"""Simulate three clients of which one changes the length of an array and one replaces, describes, repairs or commits nodes.

A number is a place in a shuffled list of such three in every world, of which each has sixteen schedules; after its end the
list begins again, with other schedules. `simulate` draws such three clients rarely.
"""

from __future__ import annotations

from collections.abc import Iterator

from campaigns.simulate import judge
from campaigns.slices import Slice, repeated, timed

from tests.simulation import cases

SUMMARY = "three clients, of which one changes the length of an array, and one replaces, describes or repairs nodes"


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
    if number % cases.TRIPLE_SCHEDULES == 0:
        part.count("triples")
    judge(number, part, cases.triple_trial(number))
