"""The histories of `histories` over local files alone: they need no server, and several run beside each other."""

from __future__ import annotations

from collections.abc import Iterator

from campaigns import histories
from campaigns.slices import Slice, repeated, timed

SUMMARY = "8 processes over local files, killed and stopped at random: no server is needed"
_FIRST = 1 << 20
"""Seeds are others than those of `histories`."""


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Do histories from `begin` on, for so long or up to `end`."""
    yield from timed(begin, seconds, _do, end)


def repeat(number: int) -> str | None:
    """Do one number again."""
    return repeated(number, _do)


def _do(number: int, part: Slice) -> None:
    histories.do("local", number, _FIRST + number, part)
