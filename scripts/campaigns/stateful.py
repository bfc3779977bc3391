"""Run random programs on arrays, hierarchies and stores beside models of them, and zarr-python's state machines.

`tests/stateful` has the programs. A number is a program: its kind, the store, and each of its steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial

from campaigns.slices import Slice, repeated, timed

from tests.stateful.programs import Folder

SUMMARY = "random programs on arrays, hierarchies and stores, beside models, and zarr-python's state machines"


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Run programs from `begin` on, for so long or up to `end`."""
    with closing(Folder()) as folder:
        yield from timed(begin, seconds, partial(_do, folder), end)


def repeat(number: int) -> str | None:
    """Run one program again."""
    with closing(Folder()) as folder:
        return repeated(number, partial(_do, folder))


def _do(folder: Folder, number: int, part: Slice) -> None:
    outcome = folder.run(number)
    part.count(f"steps ({outcome.kind})", outcome.steps)
    if outcome.wrong:
        part.find(number, outcome.wrong)
