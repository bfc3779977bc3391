"""Time, pauses and random names, in one place, so that tests may put others there."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from tessarr.core.asynchronous.sans_io import Call, Steps, run_steps
from tessarr.errors import TessarrError


async def _sleep(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


class AttemptCancelledError(Exception):
    """The operation was cancelled before it stored anything more."""


class Attempt:
    """Calls that must be known to have ended before what they did is undone."""

    def __init__(self) -> None:
        self.cancelled = False
        """Whether the operation was cancelled: requests that were not sent yet must not be sent."""
        self.begun = False
        """Something may have been stored."""
        self.ended = threading.Event()
        """Set while no call is in flight."""
        self.ended.set()

    def begin(self) -> None:
        """Record that something is about to be stored. Raises `AttemptCancelledError` when the operation was cancelled."""
        if self.cancelled:
            raise AttemptCancelledError
        self.begun = True

    def shielded(self, call: Call) -> Call:
        """Return a call that runs to its end, in a thread, when the task that awaits it is cancelled."""

        async def awaited() -> Any:
            import asyncio

            loop = asyncio.get_running_loop()
            answer: asyncio.Future[Any] = loop.create_future()
            self.ended.clear()
            threading.Thread(target=copy_context().run, args=(run, loop, answer), name="tessarr-attempt").start()
            return await answer

        def run(loop: Any, answer: Any) -> None:
            result, error = None, None
            try:
                result = call.now()
            except BaseException as raised:
                error = raised
            finally:
                self.ended.set()
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_set_outcome, answer, result, error)

        return call._replace(awaited=awaited) if call.waits else call


def _set_outcome(answer: Any, result: Any, error: BaseException | None) -> None:
    if not answer.done():
        answer.set_result(result) if error is None else answer.set_exception(error)


class Clock:
    """The clock of this machine."""

    def now(self) -> int:
        """Seconds since 1970."""
        return int(time.time())

    def pause(self, seconds: float) -> Call:
        """The call that waits for `seconds`."""
        return Call(lambda: time.sleep(seconds), lambda: _sleep(seconds), waits=True)

    def run_detached(self, steps: Steps[Any], attempt: Attempt) -> None:
        """Carry out `steps` in a thread, for a caller that was cancelled or interrupted and may wait for nothing.

        They begin when the call of `attempt` that was in flight has ended, so that they see what came of it; if nothing
        was stored, there is nothing to do.
        """

        def run() -> None:
            attempt.ended.wait()
            if not attempt.begun:
                steps.close()
                return
            with suppress(TessarrError):
                run_steps(steps)

        threading.Thread(target=run, name="tessarr-outlive").start()

    def owner(self) -> str:
        """Return a unique name."""
        return os.urandom(8).hex()


CLOCK = Clock()
