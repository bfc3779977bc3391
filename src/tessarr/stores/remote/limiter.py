"""Limit the requests that are in flight to one remote place, for the whole process.

Every request of every array, thread and event loop to one origin (a bucket, a host) acquires a slot of that origin's
`ConcurrencyLimiter` and releases it with the outcome. The number of slots adapts, as TCP's window does (additive increase,
multiplicative decrease):

- it begins at 64 and doubles per round of successes until the first sign of trouble (slow start);
- after that each round of successes adds one;
- "slow down" (429, 500, 502, 503, 504, a timeout, a reset) halves it, at most once per half second;
- a round that had more slots and moved fewer bytes per second loses a tenth of them.

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
from tessarr.stores.remote.loop import run

Outcome: TypeAlias = Literal["ok", "slow_down", "neutral"]
"""What became of a request: it went well, the place asked for less (or broke), or it says nothing about load."""

START, LEAST = 64, 2
_CUT_PAUSE_S = 0.5
"""Requests in flight when the first one fails mostly fail with it: they are one signal, not many."""
_WINDOW_S = 0.25
"""The shortest time over which a throughput is worth comparing."""


class LimiterStatistics(NamedTuple):
    """What a limiter has seen."""

    limit: int
    in_flight: int
    requests: int
    slow_downs: int
    nbytes: int


class _Waiter:
    """A task of an event loop that waits for a slot."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.granted = False
        self.future: asyncio.Future[None] = loop.create_future()

    def wake(self) -> bool:
        """Wake the task; ``False`` when its loop is closed."""
        try:
            self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:  # closed with tasks still waiting
            return False
        return True

    def _resolve(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class ConcurrencyLimiter:
    """The slots for requests to one origin. Safe to share by threads and event loops.

    >>> limiter = ConcurrencyLimiter(start=2)
    >>> asyncio.run(limiter.acquire()); limiter.release("ok", nbytes=10)
    >>> limiter.statistics().requests
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
        self._slots, self._changes = 0, -1
        """The concurrency limit of this moment, and of which change of the settings (`Config.changes`)."""
        self._in_flight = self._requests = self._slow_downs = self._nbytes = 0
        self._slow_start = True
        self._last_cut = 0.0
        self._clock = clock
        self._window = (clock(), 0, 0)
        """When the present window began, and requests and bytes at that moment."""
        self._before = (0.0, 0.0)
        """Limit and bytes per second of the window before."""

    # -- acquiring and releasing ----------------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Wait for a slot and take it."""
        with self._lock:
            if self._changes != config.changes:
                self._adapt()
            if self._in_flight < self._slots:
                self._in_flight += 1
                return
        if asyncio._get_running_loop() is None:
            run(self._wait())
        else:
            await self._wait()

    async def _wait(self) -> None:
        waiter = self._enter(asyncio.get_running_loop())
        if waiter is None:
            return
        try:
            await waiter.future
        except BaseException:  # cancelled: a slot that was granted meanwhile goes to the next one
            self._leave(waiter)
            raise

    def release(self, outcome: Outcome, *, nbytes: int = 0) -> None:
        """Release the slot after a transfer of `nbytes`."""
        with self._lock:
            if self._changes != config.changes:
                self._adapt()
            full = self._in_flight >= self._slots
            self._in_flight -= 1
            self._requests += 1
            self._nbytes += nbytes
            if outcome == "slow_down":
                self._cut()
            elif outcome == "ok" and full:
                self._grow()
            if self._waiting:
                self._wake()

    def _enter(self, loop: asyncio.AbstractEventLoop) -> _Waiter | None:
        with self._lock:
            if self._in_flight < self._slots:
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
        while self._waiting and self._in_flight < self._slots:
            waiter = self._waiting.popleft()
            if waiter.wake():
                waiter.granted = True
                self._in_flight += 1

    def _most(self) -> int:
        return max(1, int(config.get("async.concurrency"))) if self._fixed is None else self._fixed

    def _adapt(self) -> None:
        """Work out the concurrency limit of this moment."""
        self._changes = config.changes
        self._slots = min(int(self._limit), self._most())

    # -- adapting ----------------------------------------------------------------------------------------------

    def _cut(self) -> None:
        self._slow_downs += 1
        now = self._clock()
        if now - self._last_cut >= _CUT_PAUSE_S:
            self._last_cut = now
            self._slow_start = False
            self._limit = max(float(self._least), self._limit / 2)
            self._adapt()

    def _grow(self) -> None:
        grown = min(float(self._most()), self._limit + (1 if self._slow_start else 1 / self._limit))
        self._limit = max(self._limit, grown)
        self._adapt()
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
            self._adapt()
        self._window = (now, self._requests, self._nbytes)

    def statistics(self) -> LimiterStatistics:
        """The present limit and what was counted so far."""
        with self._lock:
            self._adapt()
            return LimiterStatistics(self._slots, self._in_flight, self._requests, self._slow_downs, self._nbytes)


_LIMITERS: dict[str, ConcurrencyLimiter] = {}


def limiter_for(origin: str) -> ConcurrencyLimiter:
    """The one limiter of this process for `origin` (``s3://bucket``, ``https://host``)."""
    limiter = _LIMITERS.get(origin)
    return _LIMITERS.setdefault(origin, ConcurrencyLimiter()) if limiter is None else limiter


# In a forked child the requests in flight are the parent's; the child starts with none.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMITERS.clear)
