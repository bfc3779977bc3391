"""Draw a progress bar on a terminal: with rich where it is installed, else in plain text. Elsewhere write lines, or nothing."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tessarr.cli.pace import Pace
from tessarr.cli.printing import human

if TYPE_CHECKING:
    from tessarr.cli.rich import RichBar

_INTERVAL_S = 0.1
_LINE_INTERVAL_S = 10.0
_WIDTH = 30


class Bar:
    """Show progress: call it with the finished amount, the total amount, and a description."""

    def __init__(self, *, nbytes: bool = True, lines: bool = False) -> None:
        """Set up the bar; `nbytes`: amounts are bytes, `lines`: write a line now and then where there is no terminal."""
        self.nbytes = nbytes
        self._live = sys.stderr.isatty()
        self._lines = lines and not self._live
        self._shown = time.monotonic() if self._lines else 0.0
        self._pace = Pace(nbytes=nbytes)
        self._length = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            sys.stderr.flush()
            self._length = 0

    def __call__(self, done: int, total: int, what: str) -> None:
        """Redraw the bar, a few times a second, or write a line."""
        now = time.monotonic()
        if not (self._live or self._lines) or now - self._shown < (_INTERVAL_S if self._live else _LINE_INTERVAL_S):
            return
        self._shown = now
        count = f"{human(done)} of {human(total)}" if self.nbytes else f"{done} of {total}"
        text = "  ".join(filter(None, (count, self._pace(done, total), what[:40])))
        if self._lines:
            sys.stderr.write(text + "\n")
        else:
            share = min(1.0, done / total) if total else 1.0
            line = f"[{'#' * int(share * _WIDTH):<{_WIDTH}}] {share:4.0%}  {text}"
            sys.stderr.write("\r" + line.ljust(self._length))
            self._length = len(line)
        sys.stderr.flush()


def bar(*, nbytes: bool = True, lines: bool = False) -> Bar | RichBar:
    """Make a progress bar for use in ``with``; `lines`: write lines where there is no terminal."""
    if sys.stderr.isatty():
        from tessarr.cli.rich import RichBar

        with suppress(ImportError):
            return RichBar(nbytes=nbytes)
    return Bar(nbytes=nbytes, lines=lines)
