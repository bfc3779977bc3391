"""One lock per (store, key) for the threads of this process, made when first acquired and dropped with its last user.

A thread that waits for a lock on behalf of another thread cannot be interrupted. `PATIENCE` is its cancellation check.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

PAUSE_S = 0.02
"""How long a thread with a `Patience` waits before it asks again."""


class Patience(threading.local):
    """What the present thread asks now and then while it waits for a lock; raises to make it give up."""

    ask: Callable[[], None] | None = None


PATIENCE = Patience()
"""The threads of `tessarr.engine.pool` set it."""


class Moment:
    """A lock for what is done in a moment, without waiting for anything: ``with moment: …``. New in a forked child."""

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
    """A lock for every hashable name. Rebuilt empty in a forked child, whose parent's threads do not exist there."""

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, name: Hashable) -> Iterator[None]:
        """Hold the lock called `name`. Not re-entrant."""
        with self._guard:
            lock, users = self._locks.get(name, (None, 0))
            lock = lock or threading.Lock()
            self._locks[name] = (lock, users + 1)
        try:
            _take(lock)
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


def _take(lock: threading.Lock) -> None:
    ask = PATIENCE.ask
    if ask is None:
        lock.acquire()
        return
    while not lock.acquire(timeout=PAUSE_S):
        ask()


KEYED_LOCKS = KeyedLocks()
"""The process-wide table."""
