"""Hand tasks to any `concurrent.futures.Executor`, a bounded number at a time."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    InvalidStateError,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast, runtime_checkable

from tessarr.common.counted import counted
from tessarr.errors import MissingDependencyError, UnsupportedOperationError
from tessarr.plan.strategies.ready import Hands

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture
    from distributed.cfexecutor import ClientExecutor

A = TypeVar("A")
T = TypeVar("T")


class Ended(NamedTuple, Generic[T]):
    """What came of the first tasks of those that one call carries out, and the seconds that these took."""

    results: list[T | BaseException]
    seconds: float


Submit: TypeAlias = Callable[[Sequence[int]], Future[Ended[T]]]
"""Submits tasks as one call, which `in_turn` carries out."""
Running: TypeAlias = dict[Future[Ended[T]], list[int]]
"""Calls in flight, with their tasks."""


@runtime_checkable
class Submits(Protocol):
    """What a plan uses of an executor."""

    def submit(self, fn: Callable[..., T], /, *args: object) -> Future[T]:
        """Run ``fn(*args)``."""
        ...


WINDOW = 3
"""Calls in flight per slot: the scheduler of an executor never sees more, and no slot waits for the next one."""
CALL_SECONDS = 0.1
"""What short tasks are sent together for: more is not lost with a worker that is killed. A call costs some milliseconds."""
_MOST_IN_CALL = 256
_LOOK_S = 1
"""Seconds after which a client of dask is looked at again."""
_ANSWER_S = 10
"""Seconds within which a scheduler of dask says which tasks run."""


def executor_from(executor: object, slots: int | None) -> tuple[AbstractContextManager[Submits], int]:
    """Return the executor that a user's ``executor=`` means, and its slots; ``None`` is threads of this process.

    Raises `UnsupportedOperationError` for ``"dask"`` without a current client, and for a client that is closed or asynchronous,
    `TypeError` for what is not an executor, `ValueError` for fewer slots than one.
    """
    if slots is not None and slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}")
    if executor is None:
        count = slots or 1
        return _Threads(count, "tessarr-plan"), count
    distributed = sys.modules.get("distributed")
    if executor == "dask" or (distributed is not None and isinstance(executor, distributed.Client)):
        client = _client() if executor == "dask" else cast("Client", executor)
        if client.asynchronous or client.status == "closed":
            raise UnsupportedOperationError(
                f"the client of dask is {'asynchronous' if client.asynchronous else 'closed'}",
                hint="Connect first: client = distributed.Client(ADDRESS)",
            )
        threads: dict[str, int] = client.nthreads()  # pyright: ignore[reportAssignmentType] - a coroutine only if asynchronous
        # with pure=True, a repeated task would not run
        return DaskExecutor(client.get_executor(pure=False)), slots or sum(threads.values()) or 1
    if not isinstance(executor, Submits) or isinstance(executor, type):
        raise TypeError(
            'executor must be None, "dask", a client of dask, or have submit(), as an object of a '
            f"concurrent.futures.Executor; got {executor!r}"
        )
    count = slots or getattr(executor, "_max_workers", None) or 8
    dask = sys.modules.get("distributed.cfexecutor")
    if dask is not None and isinstance(executor, dask.ClientExecutor):
        return DaskExecutor(cast("ClientExecutor", executor)), count
    return nullcontext(executor), count


class LeftRunning(KeyboardInterrupt):
    """The user does not wait for the tasks that run."""


class _Threads(ThreadPoolExecutor):
    """Threads of this process, which are left where the user leaves them."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown(wait=False, cancel_futures=True)
        if isinstance(error, LeftRunning):
            return
        try:
            self.shutdown()
        except KeyboardInterrupt:  # of a task that was just being sent when the first came
            raise LeftRunning from None


class DaskExecutor:
    """Submits tasks by the executor of a dask client. While it is entered, tasks that have not ended fail when the client is
    closed.

    A client that loses its scheduler closes itself, and can leave its futures pending forever. The futures of its executor are
    pending, too, while their tasks run.
    """

    def __init__(self, executor: ClientExecutor) -> None:
        self._executor = executor
        self._client = executor._client
        self._pending: dict[Future[object], DaskFuture[object]] = {}
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
        sent = self._client.submit(fn, *args, **self._executor._kwargs)
        self._executor._futures.add(sent)
        future: Future[T] = self._executor._wrap_future(sent)
        known = cast("Future[object]", future)
        self._pending[known] = sent
        known.add_done_callback(lambda ended: self._pending.pop(ended, None))
        return future

    def keep_started(self) -> None:
        """Make the futures of tasks that have started no longer cancellable. Where the scheduler does not answer, none."""
        pending = self._pending.copy()
        started = {sent.key for sent in pending.values() if sent.status == "finished"}
        with suppress(Exception):
            keys = [sent.key for sent in pending.values()]
            stacks = self._client.sync(self._client.scheduler.call_stack, keys=keys, callback_timeout=_ANSWER_S)
            started.update(key for of_worker in stacks.values() for key in of_worker)
        for future, sent in pending.items():
            if sent.key in started and not future.done():
                with suppress(RuntimeError):  # it has ended meanwhile
                    future.set_running_or_notify_cancel()

    def _fail_when_closed(self) -> None:
        while not self._left.wait(_LOOK_S):
            if self._client.status == "closed":
                for future in list(self._pending):
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


def in_turn(run: Callable[[A], T], tasks: Sequence[A]) -> Ended[T]:
    """Carry out the first of `tasks`, and more of them for `CALL_SECONDS`. The error of one that is alone is raised."""
    began = time.monotonic()
    results: list[T | BaseException] = []
    for task in tasks:
        try:
            results.append(run(task))
        except Exception as error:
            if len(tasks) == 1:
                raise
            results.append(error)
        if time.monotonic() - began > CALL_SECONDS:
            break
    return Ended(results, time.monotonic() - began)


def submitted(
    submit: Submit[T], ready: Hands, slots: int, retries: int, running: Running[T]
) -> Iterator[tuple[int, T | BaseException]]:
    """Run tasks, at most ``WINDOW * slots`` calls in flight, and yield each with its receipt, or with its last error.

    A task that fails is sent again, `retries` times, alone; so are those of a call that fails, whichever of them is the reason.
    A broken executor, or one that refuses a call, gets no more. What is in flight is in `running`: see `stopping`.
    """
    calls = _Calls(ready)
    takes_more = True
    while True:
        while takes_more and len(running) < WINDOW * slots and (tasks := calls.take()):
            running[_sent(submit, tasks)] = tasks
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            tasks = running.pop(future)
            error = CancelledError() if future.cancelled() else future.exception()
            takes_more = takes_more and not isinstance(error, BrokenExecutor)
            if error is None:
                results = calls.ended(tasks, future.result())
            elif len(tasks) > 1 and takes_more:
                calls.separate(tasks)
                continue
            else:
                results = [error] * len(tasks)
            for task, result in zip(tasks, results, strict=False):
                failed = isinstance(result, BaseException)
                if failed and takes_more and calls.repeats(task, retries):
                    continue
                yield task, result
                ready.ended(task, failed=failed)


@contextmanager
def stopping(executor: Submits, running: Running[T], take: Callable[[int, T], None]) -> Iterator[None]:
    """After an error in the block, cancel what is in flight, wait for the tasks that run, and `take` their receipts.

    After Ctrl-C, say so. A second one leaves them: raises `LeftRunning`.
    """
    try:
        yield
    except BaseException as error:
        try:
            if isinstance(executor, DaskExecutor):
                executor.keep_started()
            left = {future: tasks for future, tasks in running.items() if not future.cancel()}
            if left and isinstance(error, KeyboardInterrupt):
                count = counted(sum(map(len, left.values())), "task")
                line = "\n" if sys.stderr.isatty() else ""  # a bar is drawn there
                sys.stderr.write(f"{line}stopping: {count} still running; Ctrl-C again leaves what runs\n")
                sys.stderr.flush()
            for future in as_completed(left):
                if not future.cancelled() and future.exception() is None:
                    for task, result in zip(left[future], future.result().results, strict=False):
                        if not isinstance(result, BaseException):
                            take(task, result)
        except KeyboardInterrupt:
            raise LeftRunning from None
        raise


class _Calls:
    """Chooses the tasks that are sent as one call: as many as end within `CALL_SECONDS`, by what came of those before."""

    def __init__(self, ready: Hands) -> None:
        self._ready = ready
        self._again: deque[int] = deque()
        self._attempts: dict[int, int] = {}
        """How often tasks failed that are sent alone."""
        self._count = 1

    def take(self) -> list[int]:
        """Return the tasks of the next call; none where none may start before another has ended."""
        tasks: list[int] = []
        while len(tasks) < self._count:
            task = self._again.popleft() if self._again else self._ready.take()
            if task is None:
                break
            if tasks and task in self._attempts:
                self._again.appendleft(task)
                break
            tasks.append(task)
            if task in self._attempts:
                break
        return tasks

    def ended(self, tasks: Sequence[int], ended: Ended[T]) -> list[T | BaseException]:
        """Note how long a call took, and keep the tasks that it did not come to. Returns the results of the others."""
        done = len(ended.results)
        self._again.extend(tasks[done:])
        fitting = int(done * CALL_SECONDS / max(ended.seconds, 1e-9))
        self._count = max(1, min(fitting, 2 * len(tasks), _MOST_IN_CALL))
        return ended.results

    def separate(self, tasks: Sequence[int]) -> None:
        """Send the tasks of a call that failed again, each alone."""
        self._attempts.update(dict.fromkeys(tasks, 0))
        self._again.extend(tasks)

    def repeats(self, task: int, retries: int) -> bool:
        """Note that a task failed; return whether it is sent again."""
        failures = self._attempts.get(task, 0) + 1
        self._attempts[task] = failures
        if failures <= retries:
            self._again.append(task)
        return failures <= retries


def _sent(submit: Submit[T], tasks: Sequence[int]) -> Future[Ended[T]]:
    try:
        return submit(tasks)
    except Exception as error:
        broken: Future[Ended[T]] = Future()
        broken.set_exception(BrokenExecutor(f"the executor takes no more tasks: {error!r}"))
        return broken
