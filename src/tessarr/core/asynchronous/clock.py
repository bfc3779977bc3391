"""Time, pauses and random names, in one place, so that tests may put others there."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

from tessarr.core.asynchronous.sans_io import Call, Steps, finish
from tessarr.errors import TessarrError


async def _paused(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


class Clock:
    """The clock of this machine."""

    def now(self) -> int:
        """Seconds since 1970."""
        return int(time.time())

    def pause(self, seconds: float) -> Call:
        """The call that waits for `seconds`."""
        return Call(lambda: time.sleep(seconds), lambda: _paused(seconds), waits=True)

    def outlive(self, steps: Steps[None]) -> None:
        """Carry out `steps` in a thread, for a caller that was cancelled or interrupted and may wait for nothing."""

        def run() -> None:
            with suppress(TessarrError):
                finish(steps)

        threading.Thread(target=run, name="tessarr-outlive").start()

    def owner(self) -> str:
        """A name that nobody else has."""
        return os.urandom(8).hex()


CLOCK = Clock()
