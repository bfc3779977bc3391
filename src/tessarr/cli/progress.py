"""Draw a progress bar, on a terminal only: with rich where it is installed, else in plain text."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tessarr.cli.printing import human

if TYPE_CHECKING:
    from tessarr.cli.rich import RichBar

_INTERVAL_S = 0.1
_WIDTH = 30


class Bar:
    """Show progress: call it with the finished amount, the total amount, and a description."""

    def __init__(self, *, nbytes: bool = True) -> None:
        """Set up the bar; `nbytes`: amounts are bytes."""
        self.nbytes = nbytes
        self._shown = 0.0
        self._length = 0
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            sys.stderr.flush()
            self._length = 0

    def __call__(self, done: int, total: int, what: str) -> None:
        """Redraw the bar, a few times a second."""
        now = time.monotonic()
        if not self._live or now - self._shown < _INTERVAL_S:
            return
        self._shown = now
        share = min(1.0, done / total) if total else 1.0
        count = f"{human(done)} of {human(total)}" if self.nbytes else f"{done} of {total}"
        line = f"[{'#' * int(share * _WIDTH):<{_WIDTH}}] {share:4.0%}  {count}  {what[:40]}"
        sys.stderr.write("\r" + line.ljust(self._length))
        sys.stderr.flush()
        self._length = len(line)


def bar(*, nbytes: bool = True) -> Bar | RichBar:
    """Make a progress bar for use in ``with``."""
    if sys.stderr.isatty():
        from tessarr.cli.rich import RichBar

        with suppress(ImportError):
            return RichBar(nbytes=nbytes)
    return Bar(nbytes=nbytes)
