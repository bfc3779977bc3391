"""Functions that wait for stores, and their async variants.

Opening, listing and creating nodes is written once, as a generator (*steps*): it yields the calls of a store that it
waits for, all at once, and is sent their answers. `run_steps` makes the calls from this thread; `run_steps_async` awaits their
``_async`` twins, so that nothing blocks the event loop, any number of them wait at the same time, and cancelling ends the
requests. Between two waits the steps themselves (parsing a large document) run in a thread. Steps that are cancelled are
closed, so that a lock that they hold (`lock_call`) is free again.

What only rarely waits, is about local storage, or is made of many such calls (copying a hierarchy), has a twin that runs
the synchronous function in a thread, which stops before its next step once the task that awaits it is cancelled. Reading and
writing data have twins of their own (`tessarr.engine.base.Engine.read_async`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from tessarr.common.warn import context_with_caller
from tessarr.stores.protocols import Remote

if TYPE_CHECKING:
    from tessarr.stores.base import LockContext, Store

P = ParamSpec("P")
R = TypeVar("R")


class Call(NamedTuple):
    """A call that steps wait for, in both forms."""

    now: Callable[[], Any]
    awaited: Callable[[], Awaitable[Any]]
    waits: bool
    """It takes a round trip: several go side by side, and are awaited."""


Steps: TypeAlias = Generator[Sequence[Call], list[Any], R]
"""A generator that yields calls to be made at once, is sent their answers in order, and returns a result."""


def store_call(store: Store, method: str, *arguments: Any) -> Call:
    """The call of a method of a store, which has a twin."""
    return Call(
        lambda: getattr(store, method)(*arguments),
        lambda: getattr(store, f"{method}_async")(*arguments),
        isinstance(store, Remote),
    )


def lock_call(lock: LockContext, store: Store) -> Call:
    """Return the call that acquires a lock of `store`; the steps release it by ``lock.__exit__(None, None, None)``."""
    return Call(lock.__enter__, lambda: _acquire_in_thread(lock), isinstance(store, Remote))


async def _acquire_in_thread(lock: LockContext) -> None:
    """Enter `lock`, in a thread of its own: who holds it may need all those that a loop has, to come to its end."""
    import asyncio

    from tessarr.stores.locks import PATIENCE

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()
    given_up, ended = threading.Event(), threading.Lock()
    entered: list[None] = []

    def take() -> None:
        PATIENCE.store_call = functools.partial(_raise_if_set, given_up)
        try:
            lock.__enter__()
        except BaseException as error:
            if not given_up.is_set():
                loop.call_soon_threadsafe(_set_outcome, answer, error)
            return
        with ended:
            entered.append(None)
            if not given_up.is_set():
                loop.call_soon_threadsafe(_set_outcome, answer, None)
                return
        lock.__exit__(None, None, None)

    threading.Thread(target=take, name="tessarr-lock", daemon=True).start()
    try:
        await answer
    except asyncio.CancelledError:
        with ended:
            given_up.set()
            late = bool(entered)
        if late:
            lock.__exit__(None, None, None)
        raise


def _set_outcome(answer: Any, error: BaseException | None) -> None:
    if not answer.done():
        answer.set_result(None) if error is None else answer.set_exception(error)


class _CancelledError(BaseException):
    """The task that awaits this thread was cancelled."""


def _raise_if_set(given_up: threading.Event) -> None:
    if given_up.is_set():
        raise _CancelledError


_cancel_event: ContextVar[threading.Event | None] = ContextVar("_cancel_event", default=None)
"""Set once the task that awaits this thread is cancelled."""


def raise_if_cancelled() -> None:
    """End what this thread does if it did it for a coroutine, and that was cancelled."""
    event = _cancel_event.get()
    if event is not None:
        _raise_if_set(event)


def run_steps(steps: Steps[R]) -> R:
    """The result of `steps`, whose calls are made from this thread, several that wait side by side."""
    return _drive(steps, _start(steps))


async def run_steps_async(steps: Steps[R]) -> R:
    """The result of `steps`, whose calls are awaited."""
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
    return at.result  # type: ignore[no-any-return]


async def _in_thread(part: Callable[..., R], steps: Steps[Any], *arguments: Any) -> R:
    """A part of `steps`, in a thread; when this is cancelled they are closed."""

    def run(given_up: threading.Event) -> R:
        try:
            return part(steps, *arguments)
        finally:
            if given_up.is_set():
                steps.close()

    def cancelled() -> None:
        with suppress(ValueError):  # the thread is in the midst of them, and will
            steps.close()

    return await _threaded(run, cancelled)


async def _threaded(run: Callable[[threading.Event], R], cancelled: Callable[[], object]) -> R:
    """Run ``run(given_up)`` in a thread; the event is set when the awaiting task is cancelled."""
    import asyncio

    given_up = threading.Event()
    context = context_with_caller()
    context.run(_cancel_event.set, given_up)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, context.run, run, given_up)
    except asyncio.CancelledError:
        given_up.set()
        cancelled()
        raise


class _End(NamedTuple):
    result: Any


_Progress: TypeAlias = "Sequence[Call] | _End"
"""Where steps have come: to calls that they wait for, or to their end."""


def _start(steps: Steps[Any]) -> _Progress:
    try:
        return next(steps)
    except StopIteration as end:
        return _End(end.value)


def _send(steps: Steps[Any], answers: list[Any]) -> _Progress:
    try:
        return steps.send(answers)
    except StopIteration as end:
        return _End(end.value)


def _throw(steps: Steps[Any], error: Exception) -> _Progress:
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
    return at.result  # type: ignore[no-any-return]


def _call_all(calls: Sequence[Call]) -> list[Any]:
    if len(calls) == 1 or not all(call.waits for call in calls):
        return [call.now() for call in calls]
    from tessarr.stores.remote.loop import run_side_by_side

    return run_side_by_side([call.now for call in calls])


# -- making async variants --------------------------------------------------------------------------------------------


def sans_io(function: Callable[P, Steps[R]]) -> Callable[P, R]:
    """The synchronous function of a generator function of steps; `async_variant` makes the other one of it."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_steps(function(*args, **kwargs))

    # What it returns is what its steps return.
    function.__annotations__["return"] = str(function.__annotations__["return"])[len("Steps[") : -1]
    call.steps = function  # type: ignore[attr-defined]
    return call


def steps_of(function: Callable[P, R]) -> Callable[P, Steps[R]]:
    """The generator function that `function`, made by `sans_io`, is of."""
    return function.steps  # type: ignore[attr-defined, no-any-return]


def async_variant(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """The ``_async`` form of `function`: the same arguments, result and errors."""
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
