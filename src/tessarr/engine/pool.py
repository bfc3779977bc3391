"""Run the decoding and encoding of all reads and writes of this process in one thread pool.

The pool has as many threads as this process may use processors (`tessarr.engine.processors`). The caller's thread
always takes part, so that work never waits for a busy pool, and N user threads scale N-fold. Work that already runs in
the pool stays on its thread. A forked child makes a new pool.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from tessarr.common.warn import context_with_caller
from tessarr.engine.processors import processors
from tessarr.stores.locks import CANCEL_CHECK, fork_safe_lock

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class Items(Protocol[Item_co]):
    """A sized iterable: a list, or the parts of a plan."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Item_co]: ...


INLINE_NBYTES = 128 << 10
"""Decoding no more than this takes less time than waking another thread: 0.1 ms at 1 GB/s."""

_local = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_lock = fork_safe_lock()


def _forget_pool() -> None:
    global _pool
    _pool = None
    _local.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(max(1, processors() - 1), thread_name_prefix="tessarr")
        return _pool


def for_each(work: Callable[[Item], object], items: Items[Item]) -> None:
    """Call ``work(item)`` for every item, in parallel, in no particular order.

    After the first exception no further item is started; the exception is raised when the running calls have ended.
    """
    helpers = min(len(items), processors()) - 1 if len(items) > 1 else 0
    if helpers < 1 or getattr(_local, "busy", False):
        for item in items:
            work(item)
        return
    batch = _Batch(work, items)
    executor = _executor()
    # Every thread runs in a copy of the caller's context (NumPy's errstate, and warning filters from Python 3.14 on), so that
    # results do not depend on the thread. In free-threaded Python a pool thread has the context of the thread that started it.
    context = context_with_caller()
    futures = [executor.submit(context.copy().run, batch.run) for _ in range(helpers)]
    try:
        batch.run()
        _join(futures)
    except BaseException as error:  # an interrupt of the caller's thread must stop the other threads too
        batch.stop(error)
        _join(futures)
    if batch.error is not None:
        raise batch.error


def _join(futures: list[Future[None]]) -> None:
    """Cancel the futures that have not started, and wait for the others."""
    for future in futures:
        if not future.cancel():
            future.result()


_END = object()


class _StoppedError(Exception):
    """Another thread of the batch failed, or its caller was interrupted."""


class _Batch:
    """Items that several threads take one by one."""

    def __init__(self, work: Callable[[Item], object], items: Items[Item]) -> None:
        self._work = work
        self._items = iter(items)
        self._guard = threading.Lock()
        self.error: BaseException | None = None

    def stop(self, error: BaseException) -> None:
        with self._guard:
            self._items = iter(())
            self.error = self.error or error

    def raise_if_stopped(self) -> None:
        """Raise if another thread of the batch failed; set as `CancelCheck.raise_if_cancelled` in its threads."""
        if self.error is not None:
            raise _StoppedError

    def run(self) -> None:
        _local.busy = True
        CANCEL_CHECK.raise_if_cancelled = self.raise_if_stopped
        try:
            while True:
                with self._guard:
                    item = next(self._items, _END)
                if item is _END:
                    return
                self._work(item)  # type: ignore[arg-type]
        except Exception as error:
            self.stop(error)
        finally:
            CANCEL_CHECK.raise_if_cancelled = None
            _local.busy = False
