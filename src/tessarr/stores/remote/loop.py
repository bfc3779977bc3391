"""Run coroutines for synchronous callers, in an event loop per thread, and blocking functions in thread pools.

Stores behind a network are written once, as coroutines; their synchronous methods call them through `run`. Each thread keeps
its event loop for the next call. A thread in which a loop is already running cannot run another; its calls run in a pool.

A coroutine that sends one request needs no loop if its client can block: `run_blocking` runs it on the caller's thread, and
a `TaskGroup` some of them in threads, which costs less than the callbacks of a client into a loop. The functions here that
wait (`sleep`, `in_thread`, `gather_or_cancel`) block where no loop is running; such a coroutine may await only functions that
do the same.

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
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from tessarr import registry
from tessarr.common.warn import context_with_caller
from tessarr.stores.locks import fork_safe_lock

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future, ThreadPoolExecutor
    from queue import SimpleQueue

P = ParamSpec("P")
K = TypeVar("K")
T = TypeVar("T")

THREADS = 64
"""Threads of each pool. Most of them wait without the GIL."""
_READ_CHUNKS = ("tessarr.NativeEngine", "tessarr.ShardIndexCache", "tessarr.run")
"""What reads chunks: names of `registry.higher`, because it is above this module, which must not need it."""
_NEEDED_NEXT = (
    "tessarr.metadata.v3", "tessarr.dtypes.floats", "concurrent.futures.thread", *_READ_CHUNKS, "socket", "ssl", "subprocess",
    "asyncio",
)  # fmt: skip
"""What is imported while the first requests of a process, those for the documents of a node, are in flight: what parses
documents, what reads chunks, the parts of asyncio, and asyncio."""
_PAUSE_S = 0.0005
"""Between two imports: how long a thread that has something to do may take the GIL. It would wait for 5 ms otherwise."""
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
    """Three thread pools for calls that block.

    `blocking` is for calls that wait for no other call: synchronous clients, encoding, decoding. `requests` is for those of a
    `TaskGroup`, which may wait for a slot of the concurrency limit, and so for calls in `blocking`. `callers` is for calls that
    may wait in `run`, and so for both; in one pool they could occupy all threads, which is a deadlock.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.blocking = ThreadPoolExecutor(THREADS, thread_name_prefix="tessarr-blocking")
        self.requests = ThreadPoolExecutor(THREADS, thread_name_prefix="tessarr-requests")
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
_state_lock = fork_safe_lock()
_thread_loop = _ThreadLoop()
_pools: _ThreadPools | None = None
_reserved = 0
"""Threads for requests that are in use (`_reserve`)."""


class LoopTask(Generic[T]):
    """A coroutine in the event loop of this thread: ``with LoopTask(call) as wait: return wait()``.

    An interrupt cancels it. Where a loop is already running, the coroutine runs in a thread. Where none is, it does without a
    loop if `threads` says how many coroutines at most it starts in a `TaskGroup`, and this process has so many threads left
    for requests; the result is ``None`` then.
    """

    __slots__ = ("_call", "_loop", "_task", "_threads")

    def __init__(self, call: Coroutine[object, object, T], threads: int = 0) -> None:
        self._call = call
        self._threads = threads
        self._task: asyncio.Task[T] | None = None

    def __enter__(self) -> Callable[[], T | None]:
        here, self._threads = self._threads, 0
        if running_loop() is not None:
            return functools.partial(_in_caller_thread, run, self._call)
        if here and _reserve(here):
            self._threads = here
            return functools.partial(next, self._call.__await__(), None)
        self._loop = _thread_loop.loop or _thread_loop.make()
        self._task = self._loop.create_task(self._call)
        return functools.partial(self._loop.run_until_complete, self._task)

    def __exit__(self, *_: object) -> None:
        if self._threads:
            _reserve(-self._threads)
        task = self._task
        if task is not None and not task.done():  # interrupted
            import asyncio

            task.cancel()
            self._loop.run_until_complete(asyncio.gather(task, return_exceptions=True))


def run(call: Coroutine[object, object, T]) -> T:
    """Run a coroutine and wait for its result. An interrupt cancels the coroutine."""
    with LoopTask(call) as wait:
        return cast("T", wait())


def _reserve(threads: int) -> bool:
    """Reserve so many threads for requests (or return them); ``False``: other threads of this process use too many."""
    global _reserved
    with _state_lock:
        granted = _reserved + threads <= THREADS
        _reserved += threads * granted
    return granted


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


class TaskGroup(Generic[K, T]):
    """Coroutines that run concurrently, each with a key; their results are taken as they end.

    Where no event loop is running, they block, each in a thread (`run_blocking`); elsewhere they are tasks of the loop.
    """

    __slots__ = ("_context", "_ended", "_started")

    def __init__(self) -> None:
        self._started: dict[asyncio.Task[T] | Future[T], tuple[K, Coroutine[object, object, T]]] = {}
        self._ended: SimpleQueue[Future[T]] | asyncio.Queue[asyncio.Task[T]]
        self._context = context_with_caller()
        if running_loop() is None:
            from queue import SimpleQueue

            self._ended = SimpleQueue()
        else:
            import asyncio

            self._ended = asyncio.Queue()

    def __len__(self) -> int:
        """Count the coroutines whose results were not taken."""
        return len(self._started)

    def start(self, key: K, call: Coroutine[object, object, T]) -> None:
        """Start a coroutine."""
        from queue import SimpleQueue

        if isinstance(self._ended, SimpleQueue):
            future = _thread_pools().requests.submit(self._context.copy().run, run_blocking, call)
            self._started[future] = key, call
            future.add_done_callback(self._ended.put)
        else:
            import asyncio

            task = asyncio.create_task(call)
            self._started[task] = key, call
            task.add_done_callback(self._ended.put_nowait)

    async def take(self) -> list[tuple[K, T]]:
        """Wait until a coroutine has ended; return the results of all that have. Raises the first error of these."""
        from queue import SimpleQueue

        waiting = self._ended
        ended = [waiting.get() if isinstance(waiting, SimpleQueue) else await waiting.get()]
        while not waiting.empty():
            ended.append(waiting.get_nowait())
        results = [task.result() for task in ended]
        return [(self._started.pop(task)[0], result) for task, result in zip(ended, results, strict=True)]

    async def cancel(self) -> None:
        """Cancel the coroutines that have not ended. One that blocks in a thread runs to its end, and its result is dropped."""
        cancelled = [task for task in self._started if task.cancel()]
        if running_loop() is None:
            for task in cancelled:
                self._started[task][1].close()  # it had no thread yet
        elif cancelled:
            import asyncio

            await asyncio.gather(*cast("list[asyncio.Task[T]]", cancelled), return_exceptions=True)


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
    if len(calls) < 2:
        return [await call for call in calls]
    if running_loop() is None:
        few = len(calls) <= _MOST_IN_THREADS
        if few and "asyncio" not in sys.modules and all(isinstance(call, Coroutine) for call in calls):
            return _gather_in_threads(calls)  # type: ignore[arg-type]
        return run(gather_or_cancel(calls))
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
    for name in _NEEDED_NEXT:
        threads[-1].join(_PAUSE_S)
        if any(thread.is_alive() for thread in threads):  # a call that needs more imports it
            with suppress(ImportError):  # tessarr without its Rust module
                registry.higher(name) if name in _READ_CHUNKS else importlib.import_module(name)
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


def thread_pool() -> ThreadPoolExecutor:
    """Return the pool for calls that block and wait for no other call."""
    return _thread_pools().blocking


def close_threads() -> None:
    """Wait for the calls in the pools, and end their threads; the next call starts others."""
    global _pools
    with _state_lock:
        pools, _pools = _pools, None
    for pool in () if pools is None else (pools.callers, pools.requests, pools.blocking):
        pool.shutdown()


def _after_fork() -> None:
    """Leave the loops and threads of a forked child to its parent.

    A loop that the child garbage-collects closes itself, and removes its pipe from the epoll object that the child shares
    with its parent; the parent's loop would then never wake up. A loop that is marked as closed does nothing.
    """
    global _pools, _reserved, _thread_loop
    for loop in _loops:
        loop._closed = True
    _loops.clear()
    _pools, _reserved = None, 0
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
