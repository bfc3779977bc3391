"""One lock per (store, key) for the threads of this process, made when first wanted and gone when nobody wants it."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


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
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks[name]
                if users == 1:
                    del self._locks[name]
                else:
                    self._locks[name] = (lock, users - 1)


KEYED_LOCKS = KeyedLocks()
"""The process-wide table."""
