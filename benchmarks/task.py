"""One measurable piece of work of one peer, and the registry of rows that make them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peers.base import Peer


@dataclass(slots=True)
class Task:
    """Made once per peer, row and variant; run many times."""

    run: Callable[[], Any]
    """What is timed, and gives `check` its results."""
    check: Callable[[Any], None]
    """Raises AssertionError unless what `run` gave, or left behind, is the truth."""
    before: Callable[[], None] = lambda: None
    """Done before each run, outside the time."""
    calls: int = 1
    """How many calls one run makes; the figure is per call."""
    timed: Callable[[], Any] | None = None
    """What is timed instead of `run`: the same work, whose results are let go one by one."""
    measure: Callable[[], float] | None = None
    """Gives the figure itself where it is no time of `run`."""

    def once(self) -> float:
        """One figure, in the unit of the row."""
        self.before()
        if self.measure is not None:
            return self.measure()
        began = time.perf_counter()
        result = (self.timed or self.run)()
        elapsed = time.perf_counter() - began
        del result
        return elapsed / self.calls


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table in PERFORMANCE: its variants, its unit, and the bar against the best peer."""

    name: str
    title: str
    variants: tuple[str, ...]
    make: Callable[[Peer, str], Task]
    unit: str = "ms"
    bar: float | None = None
    """At least this many times better than the best peer; ``None``: no such claim."""
    limited: bool = False
    """Whether the limit is measured beside it."""
    larger_is_better: bool = False
    most_rounds: int = 15


ROWS: dict[str, Row] = {}


def row(name: str, title: str, variants: list[str], **options: Any) -> Callable[..., Callable[[Peer, str], Task]]:
    """Register the function below as the maker of a row's tasks."""

    def register(make: Callable[[Peer, str], Task]) -> Callable[[Peer, str], Task]:
        ROWS[name] = Row(name, title, tuple(variants), make, **options)
        return make

    return register
