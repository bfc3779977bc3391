"""Run independent pieces of work side by side, as many as the caller allows, and get their results in order.

For tools whose memory grows with what is in work (`jobs`), unlike `tessarr.engine.pool`, whose threads are those of the
process and whose order is free.
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
    """At most `count` threads, to be used in a ``with`` block; one is the caller's own thread."""

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

        `items` is taken as far as there are threads, so it may be endless. Work may itself call `map`: what no thread has
        begun when its result is due is done by the thread that waits for it. The first error ends the iteration, when
        the calls that have begun have ended.
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
