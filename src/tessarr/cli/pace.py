"""Say how fast long work goes, and how much time is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from tessarr.cli.printing import human


class Pace:
    """The amounts per second since the first call.

    >>> seconds = iter([0.0, 2.0])
    >>> pace = Pace(clock=lambda: next(seconds))
    >>> pace(10, 100), pace(30, 100)
    ('', '10/s, 0:00:07 left')
    """

    def __init__(self, *, nbytes: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin; `nbytes`: amounts are bytes."""
        self._nbytes = nbytes
        self._clock = clock
        self._first: tuple[float, int] | None = None

    def __call__(self, done: int, total: int) -> str:
        """Return rate and time left; "" where nothing is known yet."""
        now = self._clock()
        if self._first is None:
            self._first = now, done
        since, before = self._first
        if now <= since or done <= before:
            return ""
        rate = (done - before) / (now - since)
        shown = human(int(rate)) if self._nbytes else f"{rate:.3g}"
        return f"{shown}/s, {timedelta(seconds=int((total - done) / rate))} left"
