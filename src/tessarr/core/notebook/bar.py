"""Show how far long work is, below the cell of a notebook: a bar of HTML, or a line of text where HTML is not shown.

Functions that take `Progress` are decorated: where the caller passes none and runs in a notebook, they report to a bar. The bar
appears after half a second, so that short work shows nothing; elsewhere than in notebooks nothing is shown, and IPython is
never imported unless it is running.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, Self, TypeVar, cast

from tessarr.core.info import human
from tessarr.core.notebook.ipython import Display, in_notebook, show

P = ParamSpec("P")
R = TypeVar("R")
_PATIENCE_S = 0.5
_INTERVAL_S = 0.2
_is_shown: ContextVar[bool] = ContextVar("tessarr_progress_is_shown", default=False)
"""Whether a bar of this context reports already: work within work has none of its own."""


class _State:
    """What a notebook shows of a bar at one moment."""

    def __init__(self, what: str, done: int, total: int, text: str) -> None:
        self._what = what
        self._done = done
        self._total = total
        self._text = text

    def __repr__(self) -> str:
        return f"{self._what}: {self._text}"

    def _repr_html_(self) -> str:
        from html import escape

        name = escape(self._what, quote=True)
        return (
            f'<div><progress aria-label="{name}" max="{max(1, self._total)}" value="{self._done}"></progress> '
            f"{escape(repr(self))}</div>"
        )


class NotebookBar:
    """Show progress below a cell: call it with the finished amount, the total amount, and a description."""

    def __init__(
        self,
        what: str,
        *,
        nbytes: bool = False,
        clock: Callable[[], float] = time.monotonic,
        shower: Callable[[object], Display | None] = show,
    ) -> None:
        """Set up the bar of the work `what`; `nbytes`: amounts are bytes. Nothing is shown yet."""
        self._what = what
        self._nbytes = nbytes
        self._clock = clock
        self._shower = shower
        self._display: Display | None = None
        self._began = self._shown = clock()
        self._last = (0, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Leave the amount that was reached, and the time that it took; a bar that was never shown leaves nothing."""
        if self._display is not None:
            done, total = self._last if kind is not None else (self._last[1], self._last[1])
            end = "stopped" if kind is not None else "done"
            self._show(done, total, f"{end} after {self._clock() - self._began:.1f} s")

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show the amount, a few times a second."""
        self._last = (done, total)
        now = self._clock()
        if now - self._began >= _PATIENCE_S and (self._display is None or now - self._shown >= _INTERVAL_S):
            self._shown = now
            self._show(done, total, what)

    def _show(self, done: int, total: int, what: str) -> None:
        count = f"{human(done)} of {human(total)}" if self._nbytes else f"{done:,} of {total:,}"
        state = _State(self._what, done, total, f"{count}, {what}" if what else count)
        if self._display is None:
            self._display = self._shower(state)
        else:
            self._display.update(state)


def shows_progress(*, nbytes: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function with the keyword `progress`: in a notebook it shows a bar unless the caller passes a function."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs.get("progress") is not None or _is_shown.get() or not in_notebook():
                return function(*args, **kwargs)
            with NotebookBar(function.__name__.replace("_", " "), nbytes=nbytes) as bar:
                token = _is_shown.set(True)
                try:
                    return cast("Callable[..., R]", function)(*args, **{**kwargs, "progress": bar})
                finally:
                    _is_shown.reset(token)

        return run

    return decorate
