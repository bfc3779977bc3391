"""Run independent jobs concurrently, at most as many as the caller allows, and yield their results in order.

For tools whose memory grows with the number of running jobs (`jobs`). The threads of `tessarr.engine.pool`, in contrast, are
shared by the process, and yield no order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar

from tessarr.common.warn import context_with_caller

Item = TypeVar("Item")
Result = TypeVar("Result")


class Jobs:
    """Run jobs in at most `count` threads, the caller's thread included. To be used in a ``with`` block."""

    def __init__(self, count: int) -> None:
        self._count = max(1, count)
        self._executor = ThreadPoolExecutor(self._count, "tessarr-jobs") if self._count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Call ``work(item)`` for every item and yield the results in the order of the items.

        `items` may be endless: at most `count` items are taken in advance. `work` may itself call `map` without deadlock: a
        job that no thread has started when its result is due runs in the thread that waits for the result. The first error
        ends the iteration, after the running calls have ended.
        """
        if self._executor is None:
            yield from map(work, items)
            return
        context = context_with_caller()
        running: deque[tuple[Item, Future[Result]]] = deque()
        try:
            for item in items:
                running.append((item, self._executor.submit(context.copy().run, work, item)))
                if len(running) >= self._count:
                    yield _result(work, *running.popleft())
            while running:
                yield _result(work, *running.popleft())
        finally:
            wait([future for _, future in running if not future.cancel()])


def _result(work: Callable[[Item], Result], item: Item, future: Future[Result]) -> Result:
    return work(item) if future.cancel() else future.result()
