"""Hand tasks to any `concurrent.futures.Executor`, a bounded number at a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    InvalidStateError,
    ThreadPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar, cast, runtime_checkable

from tessarr.errors import MissingDependencyError, UnsupportedOperationError
from tessarr.plan.strategies.ready import Hands

if TYPE_CHECKING:
    from distributed import Client
    from distributed.cfexecutor import ClientExecutor

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
_LOOK_S = 1
"""Seconds after which a client of dask is looked at again."""


def executor_from(executor: object, slots: int | None) -> tuple[AbstractContextManager[Submits], int]:
    """Return the executor that a user's ``executor=`` means, and its slots; ``None`` is threads of this process.

    Raises `UnsupportedOperationError` for ``"dask"`` without a current client, `TypeError` for what is not an executor.
    """
    if executor is None:
        count = slots or 1
        return ThreadPoolExecutor(count, "tessarr-plan"), count
    if executor == "dask":
        client = _client()
        threads: dict[str, int] = client.nthreads()  # pyright: ignore[reportAssignmentType] - a coroutine only if asynchronous
        # with pure=True, a repeated task would not run
        return DaskExecutor(client.get_executor(pure=False)), slots or sum(threads.values()) or 1
    if not isinstance(executor, Submits):
        raise TypeError(
            f'executor must be None, "dask", or have submit(), as concurrent.futures.Executor; got {executor!r}'
        )
    count = slots or getattr(executor, "_max_workers", None) or 8
    dask = sys.modules.get("distributed.cfexecutor")
    if dask is not None and isinstance(executor, dask.ClientExecutor):
        return DaskExecutor(cast("ClientExecutor", executor)), count
    return nullcontext(executor), count


class DaskExecutor:
    """Submits tasks by the executor of a dask client. While it is entered, tasks that have not ended fail when the client is
    closed.

    A client that loses its scheduler closes itself, and can leave its futures pending forever.
    """

    def __init__(self, executor: ClientExecutor) -> None:
        self._executor = executor
        self._client = executor._client
        self._pending: set[Future[object]] = set()
        self._left = threading.Event()
        self._watch = threading.Thread(target=self._fail_when_closed, name="tessarr-dask", daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._watch.join()

    def submit(self, fn: Callable[..., T], /, *args: object) -> Future[T]:
        """Run ``fn(*args)`` on a worker."""
        future: Future[T] = self._executor.submit(fn, *args)
        self._pending.add(cast("Future[object]", future))
        future.add_done_callback(self._pending.discard)
        return future

    def _fail_when_closed(self) -> None:
        while not self._left.wait(_LOOK_S):
            if self._client.status == "closed":
                for future in self._pending.copy():
                    with suppress(InvalidStateError):  # it has ended meanwhile
                        future.set_exception(BrokenExecutor("the client of dask has lost its scheduler, or was closed"))


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
