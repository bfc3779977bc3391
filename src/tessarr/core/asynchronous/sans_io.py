"""Write functions that wait for stores once, without I/O, and derive the synchronous and the async variant.

Opening, listing and creating nodes is written as a coroutine (*steps*) that awaits only calls of a store (`Call`, several at
once by `gather_calls`) and other steps. Calls that take no round trip are made at once; all others are yielded, and their
results sent back. `run_steps` makes those from this thread; `run_steps_async` awaits the async variants of the methods called,
so that the event loop is never blocked, any number of calls wait at the same time, and cancelling ends the requests. Between
two waits the steps themselves (parsing a large document, calls of a local store) run in a thread. Cancelled steps are closed,
so that a lock that they hold (`lock_call`) is released.

Under `sans_io` such a coroutine function becomes a synchronous function; `async_variant` of that is its form for event loops.
Both have the signature that is written above the steps, for editors and type checkers as for `inspect.signature`.

A function that rarely waits, works on local storage, or makes many such calls (copying a hierarchy) has an async variant
that runs the synchronous function in a thread; after cancellation the thread ends before its next step. Reading and writing
data have async variants written by hand (`tessarr.engine.base.Engine.read_async`).
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from tessarr.common.warn import context_with_caller
from tessarr.stores.protocols import Remote

if TYPE_CHECKING:
    import asyncio

    from tessarr.stores.base import LockContext, Store

P = ParamSpec("P")
R = TypeVar("R")


class Call(NamedTuple):
    """A call that steps await, synchronous and asynchronous."""

    now: Callable[[], object]
    awaited: Callable[[], Awaitable[Any]]
    waits: bool
    """The call takes a round trip: several calls run concurrently, and are awaited."""

    def __await__(self) -> Generator[Sequence[Call], list[object], Any]:
        """Make this call; one that waits is yielded to the driver of the steps. Returns its result."""
        if not self.waits:
            raise_if_cancelled()
            return self.now()
        (result,) = yield (self,)
        return result


Steps: TypeAlias = Coroutine[Sequence[Call], list[object] | None, R]
"""A coroutine that yields batches of calls, is sent their results in order (at the start: ``None``), and returns a result."""


@types.coroutine
def gather_calls(calls: Sequence[Call]) -> Generator[Sequence[Call], list[object], list[Any]]:
    """Make `calls` concurrently where they take round trips, and return their results in order."""
    return (yield calls)


def store_call(store: Store, method: str, *arguments: object) -> Call:
    """Make the call of a store method that has an async variant."""
    return Call(
        lambda: getattr(store, method)(*arguments),
        lambda: getattr(store, f"{method}_async")(*arguments),
        isinstance(store, Remote),
    )


def lock_call(lock: LockContext, store: Store) -> Call:
    """Make the call that acquires a lock of `store`; the steps release the lock by ``lock.__exit__(None, None, None)``."""
    return Call(lock.__enter__, lambda: _acquire_in_thread(lock), isinstance(store, Remote))


async def _acquire_in_thread(lock: LockContext) -> None:
    """Acquire the lock in a dedicated thread.

    The holder may need every thread of the loop's executor to finish, so that waiting in one of those could deadlock.
    """
    import asyncio

    from tessarr.stores.locks import CANCEL_CHECK

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()
    cancelled_event, ended = threading.Event(), threading.Lock()
    entered: list[None] = []

    def take() -> None:
        CANCEL_CHECK.raise_if_cancelled = functools.partial(_raise_if_set, cancelled_event)
        try:
            lock.__enter__()
        except BaseException as error:
            if not cancelled_event.is_set():
                loop.call_soon_threadsafe(_set_outcome, answer, error)
            return
        with ended:
            entered.append(None)
            if not cancelled_event.is_set():
                loop.call_soon_threadsafe(_set_outcome, answer, None)
                return
        lock.__exit__(None, None, None)

    threading.Thread(target=take, name="tessarr-lock", daemon=True).start()
    try:
        await answer
    except asyncio.CancelledError:
        with ended:
            cancelled_event.set()
            late = bool(entered)
        if late:
            lock.__exit__(None, None, None)
        raise


def _set_outcome(answer: asyncio.Future[None], error: BaseException | None) -> None:
    if not answer.done():
        answer.set_result(None) if error is None else answer.set_exception(error)


class _CancelledError(BaseException):
    """Ends the work of a thread whose awaiting coroutine was cancelled."""


def _raise_if_set(cancelled_event: threading.Event) -> None:
    if cancelled_event.is_set():
        raise _CancelledError


_cancel_event: ContextVar[threading.Event | None] = ContextVar("_cancel_event", default=None)
"""The event that is set when the coroutine that awaits this thread's work is cancelled; ``None`` for synchronous work."""


def raise_if_cancelled() -> None:
    """Raise if this thread works for a coroutine that was cancelled."""
    event = _cancel_event.get()
    if event is not None:
        _raise_if_set(event)


def run_steps(steps: Steps[R]) -> R:
    """Run `steps` to their result. Calls are made from this thread, those of one batch to a remote store concurrently."""
    try:
        at = steps.send(None)
    except StopIteration as end:  # as a rule: no call waits
        return end.value  # type: ignore[no-any-return]
    return _drive(steps, at)


async def run_steps_async(steps: Steps[R]) -> R:
    """Run `steps` to their result, awaiting their calls."""
    from tessarr.stores.remote.loop import gather_or_cancel

    at = await _in_thread(_start, steps)
    while not isinstance(at, _End):
        if not all(call.waits for call in at):
            return await _in_thread(_drive, steps, at)
        try:
            answers = await gather_or_cancel([call.awaited() for call in at])
        except Exception as error:
            at = await _in_thread(_throw, steps, error)
        except BaseException:  # cancelled
            steps.close()
            raise
        else:
            at = await _in_thread(_send, steps, answers)
    return at.result  # type: ignore[return-value]


async def _in_thread(part: Callable[..., R], steps: Steps[object], *arguments: object) -> R:
    """Run ``part(steps, *arguments)`` in a thread; on cancellation close `steps`."""

    def run(cancelled_event: threading.Event) -> R:
        try:
            return part(steps, *arguments)
        finally:
            if cancelled_event.is_set():
                steps.close()

    def cancelled() -> None:
        with suppress(ValueError):  # the thread is running the steps, and closes them afterwards
            steps.close()

    return await _threaded(run, cancelled)


async def _threaded(run: Callable[[threading.Event], R], cancelled: Callable[[], object]) -> R:
    """Call ``run(cancel_event)`` in a thread; on cancellation set the event and call `cancelled`."""
    import asyncio

    cancelled_event = threading.Event()
    context = context_with_caller()
    context.run(_cancel_event.set, cancelled_event)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, lambda: context.run(run, cancelled_event))
    except asyncio.CancelledError:
        cancelled_event.set()
        cancelled()
        raise


class _End(NamedTuple):
    result: object


_Progress: TypeAlias = "Sequence[Call] | _End"
"""State of steps: the batch of calls that they wait for, or their end."""


def _start(steps: Steps[object]) -> _Progress:
    try:
        return steps.send(None)
    except StopIteration as end:
        return _End(end.value)


def _send(steps: Steps[object], answers: list[object]) -> _Progress:
    try:
        return steps.send(answers)
    except StopIteration as end:
        return _End(end.value)


def _throw(steps: Steps[object], error: Exception) -> _Progress:
    try:
        return steps.throw(error)
    except StopIteration as end:
        return _End(end.value)


def _drive(steps: Steps[R], at: _Progress) -> R:
    while not isinstance(at, _End):
        try:
            raise_if_cancelled()
            answers = _call_all(at)
        except Exception as error:
            at = _throw(steps, error)
        except BaseException:  # interrupted
            steps.close()
            raise
        else:
            at = _send(steps, answers)
    return at.result  # type: ignore[return-value]


def _call_all(calls: Sequence[Call]) -> list[object]:
    if len(calls) == 1 or not all(call.waits for call in calls):
        return [call.now() for call in calls]
    from tessarr.stores.remote.loop import run_concurrently

    return run_concurrently([call.now for call in calls])


# -- making async variants --------------------------------------------------------------------------------------------


def sans_io(function: Callable[P, Steps[R]]) -> Callable[P, R]:
    """Make the synchronous function of a coroutine function of steps; `async_variant` makes its async variant."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_steps(function(*args, **kwargs))

    call.steps = function  # type: ignore[attr-defined]
    return call


def steps_of(function: Callable[P, R]) -> Callable[P, Steps[R]]:
    """Return the coroutine function of steps from which `sans_io` made `function`."""
    return function.steps  # type: ignore[attr-defined, no-any-return]


def async_variant(function: Callable[P, R]) -> Callable[P, Coroutine[object, object, R]]:
    """Make the async variant of `function`: the same arguments, result and errors."""
    steps = getattr(function, "steps", None)

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if steps is not None:
            return await run_steps_async(steps(*args, **kwargs))
        return await _threaded(lambda _: function(*args, **kwargs), lambda: None)

    call.__name__ = f"{function.__name__}_async"
    call.__qualname__ = f"{function.__qualname__}_async"
    call.__doc__ = f"Call `{function.__name__}` asynchronously."
    return call
