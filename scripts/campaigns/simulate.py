"""Simulate clients that change one hierarchy at the same time, with every call of a store a point where others may go on.

First every pair of operations in every world, in every schedule with one switch; then seeds: two or three clients, random
schedules, crashes, lost answers. `tests/simulation/oracle.py` states the invariants; a number is a pair, then a seed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from campaigns.slices import Slice

from tests.simulation import cases
from tests.simulation.simulator import Crashed

SUMMARY = "clients in memory, on local files and in object storage, in every order of their steps"
SLICE_S = 60


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do pairs and seeds from `begin` on, for so long."""
    at, until = begin, time.monotonic() + seconds
    with cases.simulating():
        while time.monotonic() < until:
            part, ends = Slice(at), min(until, time.monotonic() + SLICE_S)
            while time.monotonic() < ends:
                _do(part.to, part)
                part.to += 1
            at = part.to
            yield part


def repeat(number: int) -> str | None:
    """Do one number again."""
    part = Slice(number)
    with cases.simulating():
        _do(number, part)
    return "\n".join(part.findings) or None


def _do(number: int, part: Slice) -> None:
    pairs = cases.pairs()
    if number < len(pairs):
        world, names = pairs[number]
        part.count("pairs")
        for outcome, wrong in cases.run_pair(world, names):
            part.count("schedules of pairs")
            if wrong:
                part.find(number, f"{world} {names}, schedule {outcome.schedule}: {wrong}")
                return
        return
    what, outcome, wrong = cases.run_seed(number)
    part.count("seeds")
    part.count("crashes", outcome.results.count(Crashed))
    if wrong:
        part.find(number, f"{what.world} {what.names} {what.faults}: {wrong}")
