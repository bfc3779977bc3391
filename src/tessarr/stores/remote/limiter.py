"""How many requests may be under way at one remote place, for the whole process.

Every request of every array, thread and event loop to one origin (a bucket, a host) takes a place in that origin's
`RequestBudget` and gives it back with what came of it. The number of places adapts, as TCP does:

- it begins at 64 and doubles per round of successes until the first sign of trouble (slow start);
- after that each round of successes adds one;
- "slow down" (429, 500, 502, 503, 504, a timeout, a reset) halves it, at most once per half second;
- a round that was given more places and moved fewer bytes per second loses a tenth of them.

It stays between 2 and the setting ``async.concurrency`` (256), which it follows when that changes. Source of the start: 64
requests at 50 ms are 1280 per second, and of 1 MiB each they fill a 10 Gbit/s link.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from tessarr.settings import config

Outcome: TypeAlias = Literal["ok", "slow_down", "neutral"]
"""What became of a request: it went well, the place asked for less (or broke), or it says nothing about load."""

START, LEAST = 64, 2
_CUT_PAUSE_S = 0.5
"""Requests under way when the first one fails mostly fail with it: they are one signal, not many."""
_WINDOW_S = 0.25
"""The shortest time over which a throughput is worth comparing."""


class BudgetStatistics(NamedTuple):
    """What a budget has seen."""

    limit: int
    in_flight: int
    requests: int
    slow_downs: int
    nbytes: int


class _Waiter:
    """Someone who waits for a place: a thread, or a task of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.granted = False
        self.event = threading.Event() if loop is None else None
        self.future: asyncio.Future[None] | None = None if loop is None else loop.create_future()

    def wake(self) -> bool:
        """Tells the waiter; ``False`` when its loop is gone."""
        if self.loop is None:
            assert self.event is not None
            self.event.set()
            return True
        try:
            self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:  # the loop was closed with tasks still waiting
            return False
        return True

    def _resolve(self) -> None:
        if self.future is not None and not self.future.done():
            self.future.set_result(None)


class RequestBudget:
    """The places for requests to one origin. Safe to share by threads and event loops.

    >>> budget = RequestBudget(start=2)
    >>> budget.acquire(); budget.release("ok", nbytes=10)
    >>> budget.statistics().requests
    1
    """

    def __init__(
        self,
        *,
        start: int = START,
        least: int = LEAST,
        most: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`most`: ``None`` is the setting ``async.concurrency``. `clock` gives seconds, for tests."""
        self._lock = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        self._limit, self._least = float(start), least
        self._fixed = most
        self._in_flight = self._requests = self._slow_downs = self._nbytes = 0
        self._slow_start = True
        self._last_cut = 0.0
        self._clock = clock
        self._window = (clock(), 0, 0)
        """When the present window began, and requests and bytes at that moment."""
        self._before = (0.0, 0.0)
        """Limit and bytes per second of the window before."""

    # -- taking and giving back ----------------------------------------------------------------------------------

    def acquire(self) -> None:
        """Waits for a place and takes it."""
        waiter = self._enter(None)
        if waiter is None:
            return
        assert waiter.event is not None
        try:
            waiter.event.wait()
        except BaseException:
            self._leave(waiter)
            raise

    async def acquire_async(self) -> None:
        """Call `acquire` asynchronously."""
        waiter = self._enter(asyncio.get_running_loop())
        if waiter is None:
            return
        assert waiter.future is not None
        try:
            await waiter.future
        except BaseException:  # cancelled: a place that was granted meanwhile goes to the next one
            self._leave(waiter)
            raise

    def release(self, outcome: Outcome, *, nbytes: int = 0) -> None:
        """Gives the place back; `nbytes` came with it."""
        with self._lock:
            full = self._in_flight >= self._allowed()
            self._in_flight -= 1
            self._requests += 1
            self._nbytes += nbytes
            if outcome == "slow_down":
                self._cut()
            elif outcome == "ok" and full:
                self._grow()
            self._wake()

    def _enter(self, loop: asyncio.AbstractEventLoop | None) -> _Waiter | None:
        with self._lock:
            if self._in_flight < self._allowed():
                self._in_flight += 1
                return None
            waiter = _Waiter(loop)
            self._waiting.append(waiter)
            return waiter

    def _leave(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter.granted:
                self._in_flight -= 1
                self._wake()
            else:
                self._waiting.remove(waiter)

    def _wake(self) -> None:
        while self._waiting and self._in_flight < self._allowed():
            waiter = self._waiting.popleft()
            if waiter.wake():
                waiter.granted = True
                self._in_flight += 1

    def _most(self) -> int:
        return max(1, int(config.get("async.concurrency"))) if self._fixed is None else self._fixed

    def _allowed(self) -> int:
        """The concurrency limit of this moment."""
        return min(int(self._limit), self._most())

    # -- adapting ----------------------------------------------------------------------------------------------

    def _cut(self) -> None:
        self._slow_downs += 1
        now = self._clock()
        if now - self._last_cut >= _CUT_PAUSE_S:
            self._last_cut = now
            self._slow_start = False
            self._limit = max(float(self._least), self._limit / 2)

    def _grow(self) -> None:
        grown = min(float(self._most()), self._limit + (1 if self._slow_start else 1 / self._limit))
        self._limit = max(self._limit, grown)
        now = self._clock()
        began, requests, nbytes = self._window
        if now - began < _WINDOW_S or self._requests - requests < 2 * self._limit:
            return
        rate = (self._nbytes - nbytes) / (now - began)
        limit, rate_before = self._before
        self._before = (self._limit, rate)
        if self._limit > limit > 0 and rate < 0.9 * rate_before:
            self._slow_start = False
            self._limit = max(float(self._least), 0.9 * self._limit)
        self._window = (now, self._requests, self._nbytes)

    def statistics(self) -> BudgetStatistics:
        """The present limit and what was counted so far."""
        with self._lock:
            return BudgetStatistics(self._allowed(), self._in_flight, self._requests, self._slow_downs, self._nbytes)


_BUDGETS: dict[str, RequestBudget] = {}


def budget_for(origin: str) -> RequestBudget:
    """The one budget of this process for `origin` (``s3://bucket``, ``https://host``)."""
    budget = _BUDGETS.get(origin)
    return _BUDGETS.setdefault(origin, RequestBudget()) if budget is None else budget


# In a forked child the requests under way are the parent's; the child begins anew.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_BUDGETS.clear)
