"""Count the work of a call instead of its seconds: a quadratic algorithm is caught on any machine, and only that."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any


class Steps:
    """How many lines of Python were run; a turn of a loop counts as one or more, in comprehensions too."""

    count = 0


@contextmanager
def counted_steps() -> Iterator[Steps]:
    """Count the lines of Python that this thread runs in functions that are called meanwhile.

    >>> with counted_steps() as few:
    ...     _ = list(x for x in range(10))
    >>> with counted_steps() as many:
    ...     _ = list(x for x in range(1000))
    >>> few.count < 50 < 1000 <= many.count < 5000
    True
    """
    steps = Steps()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        steps.count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield steps
    finally:
        sys.settrace(before)


_THREADS = Path("/proc/self/task")


def other_threads() -> dict[str, str] | None:
    """What the other threads of this process have worked so far, or ``None`` while one of them works or could.

    Twice the same means that they did nothing meanwhile, however busy the machine is. Empty where no ``/proc`` tells.
    """
    me, found = str(threading.get_native_id()), {}
    for thread in _THREADS.iterdir() if _THREADS.exists() else ():
        with suppress(OSError):  # it ends at this moment, or this system counts no turns
            if thread.name == me:
                continue
            if (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return None
            found[thread.name] = (thread / "schedstat").read_text()
    return found


_QUIET_TURNS, _MOST_TURNS, _TURN_S = 20, 2000, 0.01


async def quiet() -> None:
    """Return when the other threads of this process did nothing for several turns of the loop in succession.

    What they were going to do without an answer from outside is done then. How long a turn takes decides nothing.
    """
    turns, before = 0, None
    for _ in range(_MOST_TURNS):
        await asyncio.sleep(_TURN_S)
        now = other_threads()
        turns = turns + 1 if now is not None and now == before else 0
        before = now
        if turns == _QUIET_TURNS:
            return
