"""Simulate clients that change one hierarchy at the same time, with every call of a store a point where others may go on.

A number is a seed: of two or three clients, a random schedule, crashes, lost answers. `pairs` does every pair of operations.
`tests/simulation/oracle.py` states the invariants.
"""

from __future__ import annotations

from collections.abc import Iterator

from campaigns.slices import Slice, repeated, timed

from tests.simulation import cases
from tests.simulation.simulator import Crashed

SUMMARY = "two or three clients, in memory, on local files and in object storage, in random orders of their steps"


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Do seeds from `begin` on, for so long or up to `end`."""
    with cases.simulating():
        yield from timed(begin, seconds, _do, end)


def repeat(number: int) -> str | None:
    """Do one seed again."""
    with cases.simulating():
        return repeated(number, _do)


def _do(number: int, part: Slice) -> None:
    part.count("seeds")
    judge(number, part, cases.trial(number))


def judge(number: int, part: Slice, what: cases.Trial) -> None:
    """Run the case of a number, and note crashes and what is wrong."""
    outcome, wrong = cases.run_trial(what)
    part.count("crashes", outcome.results.count(Crashed))
    if wrong:
        part.find(number, f"{what.world} {what.names} {what.faults}: {wrong}")
