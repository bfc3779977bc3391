"""The histories of `histories` over an S3 server alone, behind the proxy that breaks answers: several run beside each other."""

from __future__ import annotations

from collections.abc import Iterator

from campaigns import histories
from campaigns.slices import Slice, repeated, timed

SUMMARY = "8 processes over an S3 server behind a proxy that breaks answers, killed and stopped at random"
_OPERATIONS = 300
"""Of each process: most of a short history is the start of its processes, and the wait for the last one."""
_FIRST = 1 << 21
"""Seeds are others than those of `histories` and `local_histories`."""


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Do histories from `begin` on, for so long or up to `end`."""
    yield from timed(begin, seconds, _do, end)


def repeat(number: int) -> str | None:
    """Do one number again."""
    return repeated(number, _do)


def _do(number: int, part: Slice) -> None:
    histories.do("s3", number, _FIRST + number, part, _OPERATIONS)
