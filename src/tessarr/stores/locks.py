"""One lock per (store, key) for the threads of this process, made when first acquired and dropped with its last user.

A thread that waits for a lock on behalf of another thread cannot be interrupted; it polls `CANCEL_CHECK` instead.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

PAUSE_S = 0.02
"""Interval at which a thread that waits for a lock polls its cancellation check."""


class CancelCheck(threading.local):
    """Cancellation check of the present thread, polled while the thread waits for a lock."""

    raise_if_cancelled: Callable[[], None] | None = None
    """Raises to abort the wait; ``None``: the thread is not cancelled from outside."""


CANCEL_CHECK = CancelCheck()
"""Set by the threads of `tessarr.engine.pool`, and by threads that acquire a lock for a coroutine."""


class ForkSafeLock:
    """A lock for short critical sections that do not wait. Replaced by a new, free lock in a forked child."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


class KeyedLocks:
    """A lock for every hashable name. Emptied in a forked child, because the parent's threads do not exist there."""

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, name: Hashable) -> Iterator[None]:
        """Acquire the lock called `name` for the ``with`` block. Not re-entrant."""
        with self._guard:
            lock, users = self._locks.get(name, (None, 0))
            lock = lock or threading.Lock()
            self._locks[name] = (lock, users + 1)
        try:
            _acquire(lock)
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._guard:
                lock, users = self._locks[name]
                if users == 1:
                    del self._locks[name]
                else:
                    self._locks[name] = (lock, users - 1)


def _acquire(lock: threading.Lock) -> None:
    raise_if_cancelled = CANCEL_CHECK.raise_if_cancelled
    if raise_if_cancelled is None:
        lock.acquire()
        return
    while not lock.acquire(timeout=PAUSE_S):
        raise_if_cancelled()


KEYED_LOCKS = KeyedLocks()
"""The process-wide table."""
