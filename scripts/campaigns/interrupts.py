"""Interrupt every workload by Ctrl-C, wherever CPython handles signals, and let the process go on, with both engines.

`tests/faults/workloads.py` has the workloads, `tests/faults/interrupts.py` the points. A number is a point in a fixed order in
which all workloads are mixed; behind the last one the first one comes again. The order changes with the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from multiprocessing.util import Finalize

from campaigns.slices import Slice, repeated, timed

from tests.faults.interrupts import Points

SUMMARY = "a workload that is interrupted by Ctrl-C, wherever CPython handles signals, after which the process goes on"


@cache
def _points() -> Points:
    """Every point, once in each process."""
    points = Points()
    Finalize(None, points.close, exitpriority=1)
    return points


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Interrupt at points from `begin` on, for so long or up to `end`."""
    yield from timed(begin, seconds, partial(_do, _points()), end)


def repeat(number: int) -> str | None:
    """Interrupt at one point again."""
    return repeated(number, partial(_do, _points()))


def _do(points: Points, number: int, part: Slice) -> None:
    subject, point = points[number]
    told = subject.interrupt(point)
    part.count("interruptions", bool(told.place))
    part.count("points", 1)
    if told.wrong:
        part.find(number, f"{subject.name}, {told.place}: {told.wrong}")
