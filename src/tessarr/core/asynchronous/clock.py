"""Time, pauses and random names, in one place, so that tests can replace them."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING

from tessarr.core.asynchronous.sans_io import Call, Steps, run_steps
from tessarr.errors import TessarrError

if TYPE_CHECKING:
    import asyncio


async def _sleep(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


class AttemptCancelledError(Exception):
    """The attempt was cancelled, so that nothing more may be stored for it."""


class Attempt:
    """Track the calls of one operation, so that its rollback starts only when none of them is in flight."""

    def __init__(self) -> None:
        self.cancelled = False
        """The caller was cancelled: no further request may be sent."""
        self.begun = False
        """A call that stores was sent, so that there may be something to roll back."""
        self.in_doubt = False
        """A request for a chunk may still be carried out: no response came."""
        self.ended = threading.Event()
        """Set while no call is in flight."""
        self.ended.set()

    def begin(self) -> None:
        """Record that the next call stores something. Raises `AttemptCancelledError` when the attempt was cancelled."""
        if self.cancelled:
            raise AttemptCancelledError
        self.begun = True

    def shielded(self, call: Call) -> Call:
        """Shield `call` from cancellation: it runs in a thread, to its end even when the awaiting task is cancelled."""

        async def awaited() -> object:
            import asyncio

            loop = asyncio.get_running_loop()
            answer: asyncio.Future[object] = loop.create_future()
            self.ended.clear()
            threading.Thread(target=copy_context().run, args=(run, loop, answer), name="tessarr-attempt").start()
            return await answer

        def run(loop: asyncio.AbstractEventLoop, answer: asyncio.Future[object]) -> None:
            result, error = None, None
            try:
                result = call.now()
            except BaseException as raised:
                error = raised
            finally:
                self.ended.set()
            with suppress(RuntimeError):  # the event loop was closed meanwhile
                loop.call_soon_threadsafe(_set_outcome, answer, result, error)

        return call._replace(awaited=awaited) if call.waits else call


def _set_outcome(answer: asyncio.Future[object], result: object, error: BaseException | None) -> None:
    if not answer.done():
        answer.set_result(result) if error is None else answer.set_exception(error)


class Clock:
    """The clock of this machine, and the names of the writers of this process."""

    def __init__(self) -> None:
        self._ended: set[str] = set()

    @property
    def ended(self) -> set[str]:
        """Owners whose operation has ended in this process by an error: their marks in a store, which may not say so, need no
        waiting."""
        return self._ended

    def now(self) -> int:
        """Return the seconds since 1970."""
        return int(time.time())

    def pause(self, seconds: float) -> Call:
        """Make the call that waits for `seconds`."""
        return Call(lambda: time.sleep(seconds), lambda: _sleep(seconds), waits=True)

    def run_detached(self, steps: Steps[object], attempt: Attempt) -> None:
        """Run `steps` in a thread that outlives the caller, which was cancelled or interrupted and cannot wait.

        The steps start when the call of `attempt` in flight has ended, so that they see its effect; if no call was sent,
        the steps are closed without running.
        """

        def run() -> None:
            attempt.ended.wait()
            if not attempt.begun:
                steps.close()
                return
            with suppress(TessarrError):
                run_steps(steps)

        threading.Thread(target=run, name="tessarr-detached").start()

    def owner(self) -> str:
        """Make a name for one writer that is unique: 64 random bits in hexadecimal."""
        return os.urandom(8).hex()


CLOCK = Clock()
