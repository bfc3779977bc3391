"""Hand tasks to any `concurrent.futures.Executor`, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable

from tessarr.errors import MissingDependencyError, UnsupportedOperationError
from tessarr.plan.strategies.ready import Hands

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
Submit: TypeAlias = Callable[[int], Future[T]]
"""Submits the task of a number, which returns its receipt."""


@runtime_checkable
class Submits(Protocol):
    """What a plan uses of an executor."""

    def submit(self, fn: Callable[..., T], /, *args: object) -> Future[T]:
        """Run ``fn(*args)``."""
        ...


WINDOW = 3
"""Tasks in flight per slot: the scheduler of an executor never sees more, and no slot waits for the next task."""


def executor_from(executor: object, slots: int | None) -> tuple[AbstractContextManager[Submits], int]:
    """Return the executor that a user's ``executor=`` means, and its slots; ``None`` is threads of this process.

    Raises `UnsupportedOperationError` for ``"dask"`` without a current client, `TypeError` for what is not an executor.
    """
    if executor is None:
        count = slots or 1
        return ThreadPoolExecutor(count, "tessarr-plan"), count
    if executor == "dask":
        client = _client()
        # with pure=True, a repeated task would not run
        threads: dict[str, int] = client.nthreads()  # pyright: ignore[reportAssignmentType] - a coroutine only if asynchronous
        return nullcontext(client.get_executor(pure=False)), slots or sum(threads.values()) or 1
    if not isinstance(executor, Submits):
        raise TypeError(
            f'executor must be None, "dask", or have submit(), as concurrent.futures.Executor; got {executor!r}'
        )
    return nullcontext(executor), slots or getattr(executor, "_max_workers", None) or 8


def _client() -> Client:
    try:
        from distributed import get_client
    except ImportError as error:
        raise MissingDependencyError(
            'executor="dask" needs the package distributed', hint="pip install 'dask[distributed]'"
        ) from error
    try:
        return get_client()
    except ValueError as error:
        raise UnsupportedOperationError(
            'executor="dask" uses the current client of dask, and there is none',
            hint="Connect first: client = distributed.Client(ADDRESS)",
        ) from error


def submitted(submit: Submit[T], ready: Hands, slots: int, retries: int) -> Iterator[tuple[int, T | BaseException]]:
    """Run tasks, at most ``WINDOW * slots`` in flight, and yield each with its receipt, or with the error of its last attempt.

    A task that fails is sent again, `retries` times. A broken executor, or one that refuses a task, gets no more.
    """
    takes_more = True
    running: dict[Future[T], tuple[int, int]] = {}
    try:
        while True:
            while takes_more and len(running) < WINDOW * slots and (task := ready.take()) is not None:
                running[_sent(submit, task)] = task, 0
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task, attempts = running.pop(future)
                error = CancelledError() if future.cancelled() else future.exception()
                takes_more = takes_more and not isinstance(error, BrokenExecutor)
                if error is not None and attempts < retries and takes_more:
                    running[_sent(submit, task)] = task, attempts + 1
                    continue
                yield task, error or future.result()
                ready.ended(task, failed=error is not None)
    finally:
        for future in running:
            future.cancel()
        wait(running)


def _sent(submit: Submit[T], task: int) -> Future[T]:
    try:
        return submit(task)
    except Exception as error:
        broken: Future[T] = Future()
        broken.set_exception(BrokenExecutor(f"the executor takes no more tasks: {error!r}"))
        return broken
