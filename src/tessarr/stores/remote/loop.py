"""How synchronous callers wait for coroutines: in an event loop of their own thread, and in threads for what blocks.

Stores behind a network are written once, as coroutines; `run` is how a synchronous method calls one. Each thread keeps its
event loop for the next call. A thread in which a loop is running already cannot run another; its calls run in a thread.

A coroutine that sends one request needs no loop where its client can block: `run_blocking` runs it on the caller's thread.
The functions here that wait (`sleep`, `in_thread`, `gather_or_cancel`) block where no loop is running, and so must all else
that such a coroutine awaits.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, ParamSpec, TypeVar

from tessarr.common.warn import context_with_caller
from tessarr.stores.locks import ForkSafeLock

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 64
"""Threads of each kind in the whole process. Most of them wait without the GIL."""
EXIT_SECONDS = 10.0
"""How long the end of the interpreter waits for callbacks of clients; each takes microseconds of CPU time."""
_WAKE_UP = asyncio.BaseEventLoop.call_soon_threadsafe.__code__


class _Threads:
    """Two kinds of threads for calls that block.

    `blocking` is for calls that end without others: synchronous clients, encoding, decoding. `callers` is for calls that
    may wait in `run` themselves, and so for the former; in one pool they could take all threads and wait for ever.
    """

    def __init__(self) -> None:
        self.blocking = ThreadPoolExecutor(THREADS, thread_name_prefix="tessarr-blocking")
        self.callers = ThreadPoolExecutor(THREADS, thread_name_prefix="tessarr-callers")


class _OwnLoop(threading.local):
    """The event loop of the present thread, once it needed one."""

    loop: asyncio.AbstractEventLoop | None = None

    def make(self) -> asyncio.AbstractEventLoop:
        """Make and keep the loop."""
        self.loop = asyncio.new_event_loop()
        _loops.add(self.loop)
        self.closer = _Closer(self.loop)
        return self.loop


class _Closer:
    """Closes a loop when its thread ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # Kept here, because modules are empty when the interpreter ends.
        self._loops, self._getpid = _loops, os.getpid
        self._process = os.getpid()

    def __del__(self) -> None:
        if self._getpid() == self._process and not self._loop.is_running():
            self._loops.discard(self._loop)
            self._loop.close()


_loops: set[Any] = set()
"""The loops of all threads, so that a forked child finds them."""
_state_lock = ForkSafeLock()
_own = _OwnLoop()
_threads: _Threads | None = None


class Running(Generic[T]):
    """A coroutine for the event loop of this thread: ``with Running(call) as wait: return wait()``.

    What an interrupt leaves unfinished is cancelled. Where a loop is running already, the coroutine runs in a thread.
    """

    __slots__ = ("_call", "_loop", "_task")

    def __init__(self, call: Coroutine[Any, Any, T]) -> None:
        self._call = call
        self._task: asyncio.Task[T] | None = None

    def __enter__(self) -> Callable[[], T]:
        if asyncio._get_running_loop() is not None:
            return functools.partial(_in_caller_thread, run, self._call)
        self._loop = _own.loop or _own.make()
        self._task = self._loop.create_task(self._call)
        return functools.partial(self._loop.run_until_complete, self._task)

    def __exit__(self, *_: object) -> None:
        task = self._task
        if task is not None and not task.done():  # interrupted
            task.cancel()
            self._loop.run_until_complete(asyncio.gather(task, return_exceptions=True))


def run(call: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and wait for its result. Raises what it raises; an interrupt cancels it."""
    with Running(call) as wait:
        return wait()


def run_blocking(call: Coroutine[object, object, T]) -> T:
    """Call `run`, without an event loop: for a coroutine that blocks where no loop is running (see the head of this file)."""
    if asyncio._get_running_loop() is not None:
        return _in_caller_thread(run_blocking, call)
    try:
        call.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    call.close()
    raise RuntimeError(f"{call!r} waits for an event loop, and none is running")


def _in_caller_thread(function: Callable[[Coroutine[object, object, T]], T], call: Coroutine[object, object, T]) -> T:
    return _running().callers.submit(context_with_caller().run, function, call).result()


def block(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that blocks and does not poll for signals.

    Signals come to the main thread. There the function runs in a thread, so that an interrupt ends the wait for it; what was
    sent then goes on to its end, or to the timeout of its client.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)
    return _running().blocking.submit(functools.partial(function, *args, **kwargs)).result()


async def sleep(seconds: float) -> None:
    """Wait."""
    if asyncio._get_running_loop() is None:
        time.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that blocks, and that does not call `run`, in a thread, whichever event loop is running."""
    if asyncio._get_running_loop() is None:
        return function(*args, **kwargs)
    return await _submit(_running().blocking, functools.partial(function, *args, **kwargs))


async def in_caller_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that blocks and may call `run`, as synchronous methods of remote stores do."""
    if asyncio._get_running_loop() is None:
        return function(*args, **kwargs)
    return await _submit(_running().callers, functools.partial(function, *args, **kwargs))


def _submit(executor: ThreadPoolExecutor, call: Callable[[], T]) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(executor, context_with_caller().run, call)


async def gather_or_cancel(calls: Sequence[Awaitable[T]]) -> list[T]:
    """The results of `calls`, in order. The first error, or being cancelled, cancels the rest."""
    if len(calls) == 1:
        return [await calls[0]]
    if asyncio._get_running_loop() is None:
        return run(gather_or_cancel(calls)) if calls else []
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def run_side_by_side(calls: Sequence[Callable[[], T]]) -> list[T]:
    """The results of calls that block, in order, each in a thread of its own. The first error cancels the rest."""
    if len(calls) < 2:
        return [call() for call in calls]
    executor, context = _running().callers, context_with_caller()
    futures = [executor.submit(context.copy().run, call) for call in calls]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _running() -> _Threads:
    global _threads
    here = _threads
    if here is None:
        with _state_lock:
            if _threads is None:
                _threads = _Threads()
            here = _threads
    return here


def _forget() -> None:
    """Leave loops and threads to the parent of a forked child.

    A loop that the child collected would close itself, and so take its pipe out of the epoll object that the child shares
    with its parent, whose loop would never wake up again. One that says that it is closed does nothing.
    """
    global _threads, _own
    for loop in _loops:
        loop._closed = True
    _loops.clear()
    _threads = None
    _own = _OwnLoop()


def _callbacks_in_flight() -> int:
    """Count the threads of other languages that are inside `call_soon_threadsafe` of an event loop."""
    known = {thread.ident for thread in threading.enumerate()}
    return sum(
        any(frame.f_code is _WAKE_UP for frame, _ in traceback.walk_stack(top))
        for ident, top in sys._current_frames().items()
        if ident not in known
    )


def _let_callbacks_return() -> None:
    """Wait, when the interpreter ends, until no client's own thread is inside a callback.

    A client in Rust hands over its result by waking the event loop, and the loop, with it the whole program, can go on
    before that call has returned. An interpreter older than 3.14 that ends meanwhile unwinds the thread, and Rust answers
    that with an abort: the program has done its work, and its exit status says that it was killed.
    """
    deadline = time.monotonic() + EXIT_SECONDS
    while _callbacks_in_flight() and time.monotonic() < deadline:
        time.sleep(0.001)


atexit.register(_let_callbacks_return)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
