"""Simulate clients that change one hierarchy at the same time, with every call of a store a point where others may go on.

A number is a seed: of two or three clients, a random schedule, crashes, lost answers. `pairs` does every pair of operations.
`tests/simulation/oracle.py` states the invariants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from campaigns.slices import Slice, repeated, timed

from tests.simulation import cases
from tests.simulation.simulator import Crashed

SUMMARY = "two or three clients, in memory, on local files and in object storage, in random orders of their steps"


def trials(
    trial: Callable[[int], cases.Trial], counted: str, listed: str | None = None
) -> tuple[Callable[..., Iterator[Slice]], Callable[[int], str | None]]:
    """Make `slices` and `repeat` of a campaign of random schedules.

    `trial`: what a number stands for; `counted`: the figure that counts these; `listed`: that of the clients that each have
    `cases.LISTED_SCHEDULES` numbers.
    """

    def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
        """Do numbers from `begin` on, for so long or up to `end`."""
        with cases.simulating():
            yield from timed(begin, seconds, do_one, end)

    def repeat(number: int) -> str | None:
        """Do one number again."""
        with cases.simulating():
            return repeated(number, do_one)

    def do_one(number: int, part: Slice) -> None:
        part.count(counted)
        if listed is not None and number % cases.LISTED_SCHEDULES == 0:
            part.count(listed)
        what = trial(number)
        outcome, wrong = cases.run_trial(what)
        part.count("crashes", outcome.results.count(Crashed))
        if wrong:
            part.find(number, f"{what.world} {what.names} {what.faults}: {wrong}")

    return slices, repeat


slices, repeat = trials(cases.trial, "seeds")
