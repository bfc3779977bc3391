"""Stopping a run half-way, as a user or a crash would."""

from __future__ import annotations

from collections.abc import Callable


class StoppedError(Exception):
    """What the tests stop a run with."""


def stop_after(count: int) -> Callable[[int, int, str], None]:
    """A `progress` that raises `StoppedError` at the piece number `count`."""
    seen = 0

    def progress(done: int, total: int, name: str) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            raise StoppedError

    return progress
