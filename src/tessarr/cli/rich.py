"""Draw the progress bar with rich, from the extra ``[cli]``."""

from __future__ import annotations

from typing import Any, Self

from tessarr.cli.pace import Pace


class RichBar:
    """Show progress like `tessarr.cli.progress.Bar`."""

    def __init__(self, *, nbytes: bool = True) -> None:
        """Set up the bar. Raises `ImportError` where rich is not installed."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
        )

        count: Any = DownloadColumn(binary_units=True) if nbytes else MofNCompleteColumn()
        columns = (BarColumn(), TextColumn("{task.percentage:3.0f}%"), count)
        self._progress = Progress(
            *columns, TextColumn("{task.description}"), console=Console(stderr=True), transient=True
        )
        self._task = self._progress.add_task("", total=None)
        self._pace = Pace(nbytes=nbytes)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Redraw the bar."""
        self._progress.update(
            self._task, completed=done, total=total, description=f"{self._pace(done, total)}  {what}".strip()
        )
