"""One lock per (store, key) for the threads of this process, made when first acquired and dropped with its last user.

A thread that waits for a lock on behalf of another thread cannot be interrupted; it polls `CANCEL_CHECK` instead.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Generator, Hashable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar
from weakref import WeakSet, WeakValueDictionary

P = ParamSpec("P")
T = TypeVar("T")

PAUSE_S = 0.02
"""Interval at which a thread that waits for a lock polls its cancellation check."""


class CancelCheck(threading.local):
    """Cancellation check of the present thread, polled while the thread waits for a lock."""

    raise_if_cancelled: Callable[[], None] | None = None
    """Raises to abort the wait; ``None``: the thread is not cancelled from outside."""


CANCEL_CHECK = CancelCheck()
"""Set by the threads of `tessarr.engine.pool`, and by threads that acquire a lock for a coroutine."""


_fork_safe: WeakSet[threading.Lock] = WeakSet()


def fork_safe_lock() -> threading.Lock:
    """Make a lock for short critical sections that do not wait. It is free in a forked child.

    It is Python's own, so that no `KeyboardInterrupt` comes between its acquisition and the block, nor before its release.
    """
    lock = threading.Lock()
    _fork_safe.add(lock)
    return lock


def _free_locks() -> None:
    for lock in [*_fork_safe]:
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # as `threading` does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)


class Held(AbstractContextManager[T]):
    """The context that a generator function of one ``yield`` makes, which holds something (`holding`).

    As `contextlib.contextmanager` makes it, but that what is held is released also after a `KeyboardInterrupt` while the block
    is entered, though the traceback is kept, as notebooks do. The generator is closed at the end of the block: errors of
    the block are not raised in it. `__exit__` may be called in any state, and again.
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: Generator[T, None, None]) -> None:
        self._steps = steps

    def __enter__(self) -> T:
        try:
            return next(self._steps)
        except BaseException:
            self._steps.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._steps.close()


def holding(function: Callable[P, Generator[T, None, None]]) -> Callable[P, Held[T]]:
    """Make a function that returns a `Held`."""

    @functools.wraps(function)
    def hold(*args: P.args, **kwargs: P.kwargs) -> Held[T]:
        return Held(function(*args, **kwargs))

    return hold


class KeyedLocks:
    """A lock for every hashable name. Emptied in a forked child, because the parent's threads do not exist there."""

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()

    @holding
    def hold(self, name: Hashable) -> Generator[None, None, None]:
        """Acquire the lock called `name` for the ``with`` block. Not re-entrant."""
        with self._guard:
            lock = self._locks.get(name)
            if lock is None:
                lock = self._locks[name] = threading.Lock()
        raise_if_cancelled = CANCEL_CHECK.raise_if_cancelled
        # A signal, which comes to the main thread, could interrupt `acquire` when it has the lock.
        if raise_if_cancelled is None or threading.current_thread() is threading.main_thread():
            with lock:
                yield
            return
        while not lock.acquire(timeout=PAUSE_S):
            raise_if_cancelled()
        try:
            yield
        finally:
            lock.release()


KEYED_LOCKS = KeyedLocks()
"""The process-wide table."""
