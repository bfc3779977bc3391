"""Wait for what must happen: how quick the machine is decides nothing, and what never happens ends after a minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 60.0
"""How long a test waits for something before it calls that a hang."""
_PAUSE_S = 0.005


def until(happened: Callable[[], object], what: str) -> None:
    """Return as soon as `happened` gives a true value; fail with `what` after a minute.

    >>> until(lambda: 1, "one is true")
    """
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:.0f} s: {what}"
        time.sleep(_PAUSE_S)


async def until_async(happened: Callable[[], object], what: str) -> None:
    """Return as soon as `happened` gives a true value, and let the loop go on meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:.0f} s: {what}"
        await asyncio.sleep(_PAUSE_S)
