"""Define the measured task of one peer, and the registry of rows that make tasks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.base import Peer


@dataclass(slots=True)
class Task:
    """Hold one task; made once per peer, row and variant, run many times."""

    run: Callable[[], Any]
    """What is timed, and gives `check` its results."""
    check: Callable[[Any], None]
    """Raises AssertionError unless `run` returned, or wrote, the true values."""
    before: Callable[[], None] = lambda: None
    """Done before each run, outside the time."""
    calls: int = 1
    """Calls in one run; the result is per call."""
    timed: Callable[[], Any] | None = None
    """Timed instead of `run`: the same work, whose results are released one by one."""
    measure: Callable[[], float] | None = None
    """Returns the result, if it is not the time of `run`."""

    def once(self) -> float:
        """Run once; return the result in the unit of the row."""
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
    """Describe a row of the table: its variants, its unit, and the required ratio to the best peer."""

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


def printed(code: str, *arguments: str) -> float:
    """Run code in a new interpreter, and return the number that it prints."""
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    # Bytecode is kept from one process to the next, as in an installed package.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    here = Path(__file__).resolve().parent
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=here)
    return float(ended.stdout)
