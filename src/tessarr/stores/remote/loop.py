"""Run coroutines for synchronous callers, in an event loop per thread, and blocking functions in thread pools.

Stores behind a network are written once, as coroutines; their synchronous methods call them through `run`. Each thread keeps
its event loop for the next call. A thread in which a loop is already running cannot run another; its calls run in a pool.

A coroutine that sends one request needs no loop if its client can block: `run_blocking` runs it on the caller's thread.
The functions here that wait (`sleep`, `in_thread`, `gather_or_cancel`) block where no loop is running; such a coroutine may
await only functions that do the same.

asyncio takes about as long to import as a request. It is imported by the first call that needs a loop; the first requests of a
process are sent by threads that block, and asyncio is imported as long as they wait (`_NEEDED_NEXT`).
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from tessarr.common.warn import context_with_caller
from tessarr.stores.locks import ForkSafeLock

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 64
"""Threads of each pool. Most of them wait without the GIL."""
_NEEDED_NEXT = (
    "tessarr.metadata.v3", "concurrent.futures", "socket", "ssl", "subprocess", "asyncio", "concurrent.futures.thread"
)  # fmt: skip
"""What is imported while the first requests of a process, those for the documents of a node, are in flight: what parses
documents, then the parts of asyncio, and asyncio."""
_MOST_IN_THREADS = 16
"""So many requests are sent by a thread each, where asyncio is not imported yet."""
EXIT_TIMEOUT_S = 10.0
"""Timeout of the wait for callbacks of clients at interpreter exit; each callback takes microseconds of CPU time."""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread: none where asyncio is not imported."""
    global running_loop
    # Of the package, which has the function once it is imported completely; its modules replace theirs meanwhile.
    found: Callable[[], asyncio.AbstractEventLoop | None] | None
    found = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    if found is not None:
        running_loop = found
    return None if found is None else found()


running_loop: Callable[[], asyncio.AbstractEventLoop | None] = _running_loop
"""Returns the event loop that runs in this thread, or ``None``. Called as an attribute of this module, because it is asyncio's
own function as soon as asyncio is imported."""


class _ThreadPools:
    """Two thread pools for calls that block.

    `blocking` is for calls that wait for no other call: synchronous clients, encoding, decoding. `callers` is for calls that
    may wait in `run`, and so for calls in `blocking`; in one pool they could occupy all threads, which is a deadlock.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.blocking = ThreadPoolExecutor(THREADS, thread_name_prefix="tessarr-blocking")
        self.callers = ThreadPoolExecutor(THREADS, thread_name_prefix="tessarr-callers")


class _ThreadLoop(threading.local):
    """The event loop of the present thread; ``None`` before the first use."""

    loop: asyncio.AbstractEventLoop | None = None

    def make(self) -> asyncio.AbstractEventLoop:
        """Make and keep the loop."""
        import asyncio

        self.loop = asyncio.new_event_loop()
        _loops.add(self.loop)
        self.closer = _Closer(self.loop)
        return self.loop


class _Closer:
    """Close a loop when its thread ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # Private references: the globals of a module are cleared at interpreter exit.
        self._loops, self._getpid, self._is_finalizing = _loops, os.getpid, sys.is_finalizing
        self._process = os.getpid()

    def __del__(self) -> None:
        if self._is_finalizing():  # asyncio may be cleared already
            self._loop._closed = True  # type: ignore[attr-defined]
        elif self._getpid() == self._process and not self._loop.is_running():
            self._loops.discard(self._loop)
            self._loop.close()


_loops: set[Any] = set()
"""The loops of all threads, so that a forked child finds them."""
_state_lock = ForkSafeLock()
_thread_loop = _ThreadLoop()
_pools: _ThreadPools | None = None


class LoopTask(Generic[T]):
    """A coroutine in the event loop of this thread: ``with LoopTask(call) as wait: return wait()``.

    An interrupt cancels it. Where a loop is already running, the coroutine runs in a thread.
    """

    __slots__ = ("_call", "_loop", "_task")

    def __init__(self, call: Coroutine[object, object, T]) -> None:
        self._call = call
        self._task: asyncio.Task[T] | None = None

    def __enter__(self) -> Callable[[], T]:
        if running_loop() is not None:
            return functools.partial(_in_caller_thread, run, self._call)
        self._loop = _thread_loop.loop or _thread_loop.make()
        self._task = self._loop.create_task(self._call)
        return functools.partial(self._loop.run_until_complete, self._task)

    def __exit__(self, *_: object) -> None:
        task = self._task
        if task is not None and not task.done():  # interrupted
            import asyncio

            task.cancel()
            self._loop.run_until_complete(asyncio.gather(task, return_exceptions=True))


def run(call: Coroutine[object, object, T]) -> T:
    """Run a coroutine and wait for its result. An interrupt cancels the coroutine."""
    with LoopTask(call) as wait:
        return wait()


def run_blocking(call: Coroutine[object, object, T]) -> T:
    """Run a coroutine that blocks where no loop is running (see the head of this file), without an event loop."""
    if running_loop() is not None:
        return _in_caller_thread(run_blocking, call)
    try:
        call.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    call.close()
    raise RuntimeError(f"{call!r} waits for an event loop, and none is running")


def _in_caller_thread(function: Callable[[Coroutine[object, object, T]], T], call: Coroutine[object, object, T]) -> T:
    return _thread_pools().callers.submit(context_with_caller().run, function, call).result()


def block(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that blocks and does not poll for signals.

    Signals are delivered to the main thread. From there the function is called in another thread, so that an interrupt ends
    the wait; a request that was sent continues to its response, or to the timeout of its client.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)
    return _thread_pools().blocking.submit(functools.partial(function, *args, **kwargs)).result()


async def sleep(seconds: float) -> None:
    """Wait for `seconds`."""
    if running_loop() is None:
        time.sleep(seconds)
    else:
        import asyncio

        await asyncio.sleep(seconds)


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that blocks, and that does not call `run`, in a thread, whichever event loop is running."""
    if running_loop() is None:
        return function(*args, **kwargs)
    return await _submit(_thread_pools().blocking, functools.partial(function, *args, **kwargs))


async def in_caller_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that blocks and may call `run`, as synchronous methods of remote stores do."""
    if running_loop() is None:
        return function(*args, **kwargs)
    return await _submit(_thread_pools().callers, functools.partial(function, *args, **kwargs))


def _submit(executor: ThreadPoolExecutor, call: Callable[[], T]) -> asyncio.Future[T]:
    import asyncio

    return asyncio.get_running_loop().run_in_executor(executor, context_with_caller().run, call)


async def invoke(
    blocking: Callable[P, T], coroutine: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a method of another store: `coroutine` where an event loop is running, else `blocking`, the other form of it."""
    if running_loop() is None:
        return blocking(*args, **kwargs)
    return await coroutine(*args, **kwargs)


async def gather_or_cancel(calls: Sequence[Awaitable[T]]) -> list[T]:
    """Await `calls` concurrently; return their results, in order. The first error, or cancellation, cancels the rest."""
    if len(calls) == 1:
        return [await calls[0]]
    if running_loop() is None:
        few = len(calls) <= _MOST_IN_THREADS
        if few and "asyncio" not in sys.modules and all(isinstance(call, Coroutine) for call in calls):
            return _gather_in_threads(calls)  # type: ignore[arg-type]
        return run(gather_or_cancel(calls)) if calls else []
    import asyncio

    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _gather_in_threads(calls: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """Run coroutines that block, each in a thread, and import what they wait long enough for. The first error is raised."""
    found: list[tuple[T | None, BaseException | None]] = [(None, None)] * len(calls)

    def work(number: int, call: Coroutine[object, object, T]) -> None:
        try:
            found[number] = run_blocking(call), None
        except BaseException as error:
            found[number] = None, error

    context = context_with_caller()
    threads = [
        threading.Thread(target=context.copy().run, args=(work, *item), name="tessarr-first")
        for item in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for module in _NEEDED_NEXT:
        if any(thread.is_alive() for thread in threads):  # a call that needs more imports it
            importlib.import_module(module)
    for thread in threads:
        thread.join()
    for _, error in found:
        if error is not None:
            raise error
    return [result for result, _ in found]  # type: ignore[misc]


def run_concurrently(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make blocking calls concurrently, each in a thread; return their results, in order. The first error cancels the rest."""
    if len(calls) < 2:
        return [call() for call in calls]
    executor, context = _thread_pools().callers, context_with_caller()
    futures = [executor.submit(context.copy().run, call) for call in calls]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _thread_pools() -> _ThreadPools:
    global _pools
    here = _pools
    if here is None:
        with _state_lock:
            if _pools is None:
                _pools = _ThreadPools()
            here = _pools
    return here


def _after_fork() -> None:
    """Leave the loops and threads of a forked child to its parent.

    A loop that the child garbage-collects closes itself, and removes its pipe from the epoll object that the child shares
    with its parent; the parent's loop would then never wake up. A loop that is marked as closed does nothing.
    """
    global _pools, _thread_loop
    for loop in _loops:
        loop._closed = True
    _loops.clear()
    _pools = None
    _thread_loop = _ThreadLoop()


def _callbacks_in_flight() -> int:
    """Count the threads of other languages that are inside `call_soon_threadsafe` of an event loop."""
    import asyncio

    awakening = asyncio.BaseEventLoop.call_soon_threadsafe.__code__
    known = {thread.ident for thread in threading.enumerate()}
    return sum(
        any(frame.f_code is awakening for frame, _ in traceback.walk_stack(top))
        for ident, top in sys._current_frames().items()
        if ident not in known
    )


def _wait_for_callbacks() -> None:
    """Wait, at interpreter exit, until no thread of a client is inside a callback.

    A client in Rust passes its result on by waking the event loop, and the loop, with it the whole program, can go on
    before that call has returned. An interpreter older than 3.14 that exits meanwhile unwinds the thread, and Rust aborts
    the process: the program has done its work, but its exit status reports that it was killed.
    """
    if "asyncio" not in sys.modules:
        return
    deadline = time.monotonic() + EXIT_TIMEOUT_S
    while _callbacks_in_flight() and time.monotonic() < deadline:
        time.sleep(0.001)


def _at_exit() -> None:
    """Wait for callbacks, and close the loop of the main thread, while asyncio, which was imported later, is still there."""
    _wait_for_callbacks()
    loop, _thread_loop.loop = _thread_loop.loop, None
    if loop is not None and not loop.is_running():
        _loops.discard(loop)
        loop.close()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
