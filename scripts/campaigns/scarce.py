"""Let memory, file descriptors and the size of files run out, with both engines.

`tests/faults/scarcity.py` has the programs and the limits. A number is a program under a limit, in a fixed order in which all
are mixed; the list has an end.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from campaigns.slices import Slice, repeated, timed

from tests.faults.scarcity import Bench, Case, cases

SUMMARY = "programs for which memory, file descriptors or the size of files run out, with both engines"


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do cases from `begin` on, for so long."""
    warnings.simplefilter("ignore")
    found = cases()
    with closing(Bench()) as bench:
        yield from timed(begin, seconds, partial(_do, bench, found), end=len(found))


def repeat(number: int) -> str | None:
    """Do one number again."""
    with closing(Bench()) as bench:
        return repeated(number, partial(_do, bench, cases()))


def _do(bench: Bench, found: list[Case], number: int, part: Slice) -> None:
    case = found[number]
    ran_out, wrong = bench.judge(case)
    part.count(f"limits of {case.what}")
    part.count("that came into effect", ran_out)
    if wrong:
        part.find(number, f"{case}: {wrong}")
