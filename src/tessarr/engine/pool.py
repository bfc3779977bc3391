"""The threads that all reads and writes of this process share.

As many as the processors this process may use (`tessarr.engine.processors`). The caller's thread
always takes part, so work never waits for a busy pool, and N user threads scale N-fold. Work that is itself running in
the pool stays on its thread. A forked child makes a new pool.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from tessarr.common.warn import context_with_caller
from tessarr.engine.processors import processors
from tessarr.stores.locks import PATIENCE, Moment

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class Items(Protocol[Item_co]):
    """What can be counted and gone through: a list, or the parts of a plan."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Item_co]: ...


INLINE_NBYTES = 128 << 10
"""Decoding no more than this takes less time than waking another thread: 0.1 ms at 1 GB/s."""

_local = threading.local()
_pool: ThreadPoolExecutor | None = None
_making = Moment()


def _forget_pool() -> None:
    global _pool
    _pool = None
    _local.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _making:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(max(1, processors() - 1), thread_name_prefix="tessarr")
        return _pool


def for_each(work: Callable[[Item], object], items: Items[Item]) -> None:
    """Call ``work(item)`` for every item, in parallel, in no particular order.

    After the first exception no new item is begun, and it is raised when those under way have ended.
    """
    helpers = min(len(items), processors()) - 1 if len(items) > 1 else 0
    if helpers < 1 or getattr(_local, "busy", False):
        for item in items:
            work(item)
        return
    batch = _Batch(work, items)
    executor = _executor()
    # Each in what the caller's context says (NumPy's errstate, and filters of warnings from Python 3.14 on): the result
    # does not depend on who took an item. Threads of free-threaded Python would keep that of who began them.
    context = context_with_caller()
    futures = [executor.submit(context.copy().run, batch.run) for _ in range(helpers)]
    try:
        batch.run()
        _join(futures)
    except BaseException as error:  # an interrupt of the caller's thread must stop the helpers too
        batch.stop(error)
        _join(futures)
    if batch.error is not None:
        raise batch.error


def _join(futures: list[Future[None]]) -> None:
    """Wait for those that have begun; the others are not needed."""
    for future in futures:
        if not future.cancel():
            future.result()


_END = object()


class _StoppedError(Exception):
    """Another thread of the batch failed, or its caller was interrupted."""


class _Batch:
    """Items handed out one by one to whichever thread is free."""

    def __init__(self, work: Callable[[Item], object], items: Items[Item]) -> None:
        self._work = work
        self._items = iter(items)
        self._guard = threading.Lock()
        self.error: BaseException | None = None

    def stop(self, error: BaseException) -> None:
        with self._guard:
            self._items = iter(())
            self.error = self.error or error

    def ask(self) -> None:
        """See `tessarr.stores.locks.Patience`."""
        if self.error is not None:
            raise _StoppedError

    def run(self) -> None:
        _local.busy = True
        PATIENCE.ask = self.ask
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
            PATIENCE.ask = None
            _local.busy = False
