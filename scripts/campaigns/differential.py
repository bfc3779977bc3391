"""Let every implementation of Zarr that is installed read the same arrays, valid ones and ones with one thing changed.

`tests/differential` has the arrays, the readers and the ledger of disagreements. A number is an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from campaigns.slices import Slice, repeated, timed

from tests.differential.comparison import Comparison

SUMMARY = "arrays, half of them with one thing changed, that zarr-python, TensorStore, zarrs and zarrita.js read too"


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Do arrays from `begin` on, for so long or up to `end`."""
    with Comparison() as comparison:
        yield from timed(begin, seconds, partial(_do, comparison), end)


def repeat(number: int) -> str | None:
    """Do one array again."""
    with Comparison() as comparison:
        return repeated(number, partial(_do, comparison))


def _do(comparison: Comparison, number: int, part: Slice) -> None:
    outcome = comparison.compare(number)
    part.count("arrays")
    part.count("readings", outcome.readings)
    part.count("explained disagreements", outcome.explained)
    for wrong in outcome.wrong:
        part.find(number, wrong)
