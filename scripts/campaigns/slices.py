"""What a campaign tells of a part of its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SLICE_S = 60


@dataclass
class Slice:
    """What was done up to the number `to`, without it."""

    to: int
    figures: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def count(self, figure: str, times: int = 1) -> None:
        """Add to a figure."""
        self.figures[figure] = self.figures.get(figure, 0) + times

    def find(self, number: int, what: str) -> None:
        """Note what is wrong; `number` repeats it."""
        self.findings.append(f"--repeat {number}: {what}")


Do = Callable[[int, Slice], Iterator[None] | None]
"""What does a number. Where that may take long it yields now and then, so that a slice can end within it."""


def timed(begin: int, seconds: float, do: Do, end: int | None = None, slice_s: float = SLICE_S) -> Iterator[Slice]:
    """Do numbers from `begin` on, at least one, for so long or up to `end`, in slices of `slice_s` seconds.

    A slice that ends within a number does not count it as done: the next run begins with it again.
    """
    at, until = begin, time.monotonic() + seconds
    while (at == begin or time.monotonic() < until) and (end is None or at < end):
        part, ends = Slice(at), min(until, time.monotonic() + slice_s)
        while (part.to == at or time.monotonic() < min(ends, until)) and (end is None or part.to < end):
            for _ in do(part.to, part) or ():
                if time.monotonic() >= ends:
                    yield Slice(part.to, part.figures, part.findings)
                    part.figures, part.findings = {}, []  # `do` goes on with this slice
                    ends = time.monotonic() + slice_s
            part.to += 1
        at = part.to
        yield part


def repeated(number: int, do: Do) -> str | None:
    """Do one number again. Returns what is wrong."""
    part = Slice(number)
    for _ in do(number, part) or ():
        pass
    return "\n".join(part.findings) or None
