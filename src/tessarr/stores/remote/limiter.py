"""Limit the requests that are in flight to one remote place, for the whole process.

Every request of every array, thread and event loop to one origin (a bucket, a host) acquires a slot of that origin's
`ConcurrencyLimiter` and releases it with the outcome. The number of slots adapts, as TCP's window does (additive increase,
multiplicative decrease):

- it begins at 64 and doubles per round of successes until the first decrease (slow start);
- after that each round of successes adds one;
- "slow down" (429, 500, 502, 503, 504, a timeout, a reset) halves it, at most once per half second;
- a round with more slots and less throughput than the round before reduces it by a tenth.

It stays between 2 and the setting ``async.concurrency`` (256), and follows changes of the setting. Source of the start: 64
requests at 50 ms are 1280 per second, and of 1 MiB each they fill a 10 Gbit/s link.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from tessarr.settings import config
from tessarr.stores.remote import loop
from tessarr.stores.remote.loop import run

if TYPE_CHECKING:
    import asyncio

Outcome: TypeAlias = Literal["ok", "slow_down", "neutral"]
"""The outcome of a request: success, congestion (the server throttles or fails), or an error that says nothing about load."""

START, MINIMUM = 64, 2
_DECREASE_INTERVAL_S = 0.5
"""Requests in flight when the first one fails mostly fail too: together they are one signal of congestion."""
_WINDOW_S = 0.25
"""The shortest time over which throughputs are compared."""


class LimiterStatistics(NamedTuple):
    """The counters of a limiter."""

    limit: int
    in_flight: int
    requests: int
    slow_downs: int
    nbytes: int


class _Waiter:
    """A task that waits for a slot, in its event loop."""

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

    >>> import asyncio
    >>> limiter = ConcurrencyLimiter(start=2)
    >>> asyncio.run(limiter.acquire()); limiter.release("ok", nbytes=10)
    >>> limiter.statistics().requests
    1
    """

    def __init__(
        self,
        *,
        start: int = START,
        minimum: int = MINIMUM,
        maximum: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with `start` slots. `maximum`: ``None`` is the setting ``async.concurrency``. `clock` returns seconds."""
        self._lock = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        self._limit, self._minimum = float(start), minimum
        self._fixed = maximum
        self._slots, self._changes = 0, -1
        """The present concurrency limit, and the number of changes of the settings that it is for (`Config.changes`)."""
        self._in_flight = self._requests = self._slow_downs = self._nbytes = 0
        self._slow_start = True
        self._last_decrease = 0.0
        self._clock = clock
        self._window = (clock(), 0, 0)
        """The start of the present window, with the requests and bytes until then."""
        self._before = (0.0, 0.0)
        """Limit and bytes per second of the previous window."""

    # -- acquiring and releasing ----------------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Wait for a slot and take it."""
        with self._lock:
            if self._changes != config.changes:
                self._update_slots()
            if self._in_flight < self._slots:
                self._in_flight += 1
                return
        if loop.running_loop() is None:
            run(self._wait())
        else:
            await self._wait()

    async def _wait(self) -> None:
        import asyncio

        waiter = self._enqueue(asyncio.get_running_loop())
        if waiter is None:
            return
        try:
            await waiter.future
        except BaseException:  # cancelled: a slot that was granted meanwhile goes to the next one
            self._dequeue(waiter)
            raise

    def release(self, outcome: Outcome, *, nbytes: int = 0) -> None:
        """Release the slot after a transfer of `nbytes`."""
        with self._lock:
            if self._changes != config.changes:
                self._update_slots()
            full = self._in_flight >= self._slots
            self._in_flight -= 1
            self._requests += 1
            self._nbytes += nbytes
            if outcome == "slow_down":
                self._decrease()
            elif outcome == "ok" and full:
                self._increase()
            if self._waiting:
                self._wake()

    def _enqueue(self, loop: asyncio.AbstractEventLoop) -> _Waiter | None:
        with self._lock:
            if self._in_flight < self._slots:
                self._in_flight += 1
                return None
            waiter = _Waiter(loop)
            self._waiting.append(waiter)
            return waiter

    def _dequeue(self, waiter: _Waiter) -> None:
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

    def _maximum(self) -> int:
        return max(1, int(config.get("async.concurrency"))) if self._fixed is None else self._fixed

    def _update_slots(self) -> None:
        """Compute the present concurrency limit."""
        self._changes = config.changes
        self._slots = min(int(self._limit), self._maximum())

    # -- adapting ----------------------------------------------------------------------------------------------

    def _decrease(self) -> None:
        self._slow_downs += 1
        now = self._clock()
        if now - self._last_decrease >= _DECREASE_INTERVAL_S:
            self._last_decrease = now
            self._slow_start = False
            self._limit = max(float(self._minimum), self._limit / 2)
            self._update_slots()

    def _increase(self) -> None:
        grown = min(float(self._maximum()), self._limit + (1 if self._slow_start else 1 / self._limit))
        self._limit = max(self._limit, grown)
        self._update_slots()
        now = self._clock()
        began, requests, nbytes = self._window
        if now - began < _WINDOW_S or self._requests - requests < 2 * self._limit:
            return
        rate = (self._nbytes - nbytes) / (now - began)
        limit, rate_before = self._before
        self._before = (self._limit, rate)
        if self._limit > limit > 0 and rate < 0.9 * rate_before:
            self._slow_start = False
            self._limit = max(float(self._minimum), 0.9 * self._limit)
            self._update_slots()
        self._window = (now, self._requests, self._nbytes)

    def statistics(self) -> LimiterStatistics:
        """Return the present limit and the counters."""
        with self._lock:
            self._update_slots()
            return LimiterStatistics(self._slots, self._in_flight, self._requests, self._slow_downs, self._nbytes)


_LIMITERS: dict[str, ConcurrencyLimiter] = {}


def limiter_for(origin: str) -> ConcurrencyLimiter:
    """Return the limiter that all stores of this process share for `origin` (``s3://bucket``, ``https://host``)."""
    limiter = _LIMITERS.get(origin)
    return _LIMITERS.setdefault(origin, ConcurrencyLimiter()) if limiter is None else limiter


# In a forked child the requests in flight are the parent's; the child starts with none.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMITERS.clear)
