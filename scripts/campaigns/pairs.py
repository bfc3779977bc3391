"""Simulate every pair of operations in every world, in every schedule in which a client is interrupted at most once.

A number is a place in the list of pairs, which has an end; operations that are added later add pairs behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from campaigns.slices import Slice, repeated, timed

from tests.simulation import cases

SUMMARY = "two clients, in memory, on local files and in object storage, in every order with one interruption"


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Do pairs from `begin` on, for so long or up to `end`."""
    with cases.simulating():
        last = len(cases.pairs())
        yield from timed(begin, seconds, _do, last if end is None else min(end, last))


def repeat(number: int) -> str | None:
    """Do one pair again."""
    with cases.simulating():
        return repeated(number, _do)


def _do(number: int, part: Slice) -> Iterator[None]:
    world, names = cases.pairs()[number]
    part.count("pairs")
    for outcome, wrong in cases.run_pair(world, names):
        part.count("schedules")
        yield
        if wrong:
            part.find(number, f"{world} {names}, schedule {outcome.schedule}: {wrong}")
            return
