"""Simulate pairs of operations in object storage of which the first client is stopped at one of its requests, at each in turn.

It goes on when the other one has ended, which waits until it may end what the first had begun. A number is a place in the
list of pairs, which has an end.
"""

from __future__ import annotations

from collections.abc import Iterator

from campaigns.slices import Slice, repeated, timed

from tests.simulation import cases

SUMMARY = (
    "two clients in object storage, of which one is stopped at each of its requests for longer than the other waits"
)


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do pairs from `begin` on, for so long."""
    with cases.simulating():
        yield from timed(begin, seconds, _do, end=len(cases.stalls()))


def repeat(number: int) -> str | None:
    """Do one pair again."""
    with cases.simulating():
        return repeated(number, _do)


def _do(number: int, part: Slice) -> Iterator[None]:
    world, names = cases.stalls()[number]
    part.count("pairs")
    for at, _, wrong in cases.run_stalled(world, names):
        part.count("schedules")
        yield
        if wrong:
            part.find(number, f"{world} {names}, stopped at {at}: {wrong}")
            return
