"""What every store behind a network shares: waves, the request budget, retries, and compare-and-swap updates.

A subclass says how to send one request (`_ask`, `_ask_async`), how to name what went wrong (`_fault`), and how to
write and list. `serve` and `fetch` then turn what is wanted into as few requests as `tessarr.stores.remote.course` needs, and
send them side by side under the origin's `RequestBudget`.

The synchronous methods use threads (one pool per process, at most `POOL_SIZE`), the asynchronous ones the loop they
are called in; neither needs the other.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import queue
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar

from tessarr.errors import ConflictError, StoreError
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Asker, Fetch, Version
from tessarr.stores.fetch_methods import FetchingStore
from tessarr.stores.locks import Moment
from tessarr.stores.remote.coalesce import PIECE
from tessarr.stores.remote.course import Answer, Course, Once, Want
from tessarr.stores.remote.limiter import RequestBudget
from tessarr.stores.remote.retry import Fault, Journal, RetryPolicy
from tessarr.types import Buffer, ByteRange

T = TypeVar("T")

POOL_SIZE = 64
"""Threads for synchronous requests, in the whole process. They wait without the GIL."""
_CAS_ROUNDS = 200
_pool: ThreadPoolExecutor | None = None
_making = Moment()


class NetworkStore(FetchingStore):
    """A store behind a network. See the head of this file."""

    is_remote = True
    supports_conditional_writes = False
    """`set(if_match=…)` is atomic, so that `update` needs no lock."""
    requests_at_once = POOL_SIZE
    retry: RetryPolicy = RetryPolicy()
    _budget: RequestBudget
    _ranges_work = True
    """``False`` once a server answered a range with the whole object; everything is then fetched whole."""

    @property
    def update_sees_set(self) -> bool:  # type: ignore[override]
        """Where writes are conditional."""
        return self.supports_conditional_writes

    @property
    def update_reaches_all(self) -> bool:  # type: ignore[override]
        """Where writes are conditional."""
        return self.supports_conditional_writes

    # -- for subclasses ------------------------------------------------------------------------------------------

    def _ask(self, key: str, byte_range: ByteRange | None) -> Answer:
        """One request. ``ByteRange(0, 0)`` asks for size and version alone."""
        raise NotImplementedError

    async def _ask_async(self, key: str, byte_range: ByteRange | None) -> Answer:
        """Call `_ask` asynchronously: in our threads, of which there are more than the few of a loop."""
        call = functools.partial(contextvars.copy_context().run, self._ask, key, byte_range)
        return await asyncio.get_running_loop().run_in_executor(_thread_pool(), call)

    def _fault(self, error: Exception) -> Fault | None:
        """What `error`, raised by the client library, means; ``None``: it is not about the request."""
        raise NotImplementedError

    # -- one request, with budget and retries ---------------------------------------------------------------------

    def _send(self, key: str, operation: str, call: Callable[[], T]) -> T | None:
        """The answer of `call`, sent again as the table in `tessarr.stores.remote.retry` says; ``None``: no such key."""
        journal = Journal(self.retry, store=self.url, key=key, operation=operation)
        while True:
            self._budget.acquire()
            fault: Fault | None = Fault("final", "interrupted")
            nbytes = 0
            try:
                answer = call()
                fault, nbytes = None, _nbytes(answer)
                return answer
            except Exception as error:
                fault = error if isinstance(error, Fault) else self._fault(error)
                if fault is None:
                    raise
            finally:
                self._budget.release("ok" if fault is None else fault.outcome, nbytes=nbytes)
            if fault.kind == "missing":
                return None
            time.sleep(journal.pause(fault))

    async def _send_async(self, key: str, operation: str, call: Callable[[], Awaitable[T]]) -> T | None:
        """Call `_send` asynchronously."""
        journal = Journal(self.retry, store=self.url, key=key, operation=operation)
        while True:
            await self._budget.acquire_async()
            fault: Fault | None = Fault("final", "cancelled")
            nbytes = 0
            try:
                answer = await call()
                fault, nbytes = None, _nbytes(answer)
                return answer
            except Exception as error:
                fault = error if isinstance(error, Fault) else self._fault(error)
                if fault is None:
                    raise
            finally:
                self._budget.release("ok" if fault is None else fault.outcome, nbytes=nbytes)
            if fault.kind == "missing":
                return None
            await asyncio.sleep(journal.pause(fault))

    def _get_span(self, key: str, span: ByteRange | None) -> Answer | None:
        return self._send(key, "GET", lambda: _checked(self._ask(key, span), span))

    async def _get_span_async(self, key: str, span: ByteRange | None) -> Answer | None:
        async def call() -> Answer:
            return _checked(await self._ask_async(key, span), span)

        return await self._send_async(key, "GET", call)

    # -- reading -----------------------------------------------------------------------------------------------

    def fetch(self, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
        """Several values or parts of them, in one wave of requests (two where an object is larger than `PIECE`)."""
        return self.fetch_versioned(requests)[0]

    async def fetch_async(self, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
        """Call `fetch` asynchronously."""
        return (await self.fetch_versioned_async(requests))[0]

    def fetch_versioned(self, requests: Sequence[Fetch]) -> tuple[list[list[Buffer] | None], list[Version | None]]:
        """`fetch`, and the version of each value."""
        once = Once(requests)
        self.serve(once)
        return once.answers, once.versions

    async def fetch_versioned_async(
        self, requests: Sequence[Fetch]
    ) -> tuple[list[list[Buffer] | None], list[Version | None]]:
        """Call `fetch_versioned` asynchronously."""
        once = Once(requests)
        course = Course(once, self.url, ranges_work=self._ranges_work)
        async with Flights(self._get_span_async) as flights:
            flights.send(course.begin())
            while flights.underway:
                flights.send(course.land(await flights.next()))
        return once.answers, once.versions

    def serve(self, asker: Asker) -> None:
        """Answer all that `asker` asks, each value as soon as it is there."""
        course = Course(asker, self.url, ranges_work=self._ranges_work)
        todo = course.begin()
        underway: dict[Future[Answer | None], Want] = {}
        landed: queue.SimpleQueue[Future[Answer | None]] = queue.SimpleQueue()
        try:
            while todo or underway:
                if len(todo) == 1 and not underway:  # needs no other thread
                    todo = course.land([(todo[0], self._get_span(todo[0].job.key, todo[0].span))])
                    continue
                for want in todo:
                    future = _thread_pool().submit(self._get_span, want.job.key, want.span)
                    underway[future] = want
                    future.add_done_callback(landed.put)
                now = [landed.get()]
                while not landed.empty():
                    now.append(landed.get())
                todo = course.land([(underway.pop(future), future.result()) for future in now])
        except BaseException:
            for future in underway:
                future.cancel()
            raise

    async def serve_async(self, asker: Asker) -> None:
        """Call `serve` asynchronously; `asker` is called in threads, one at a time."""
        course = Course(asker, self.url, ranges_work=self._ranges_work)
        async with Flights(self._get_span_async) as flights:
            flights.send(await asyncio.to_thread(course.begin))
            while flights.underway:
                flights.send(await asyncio.to_thread(course.land, await flights.next()))

    def _head(self, key: str) -> Answer | None:
        return self._send(key, "HEAD", lambda: self._ask(key, ByteRange(0, 0)))

    async def _head_async(self, key: str) -> Answer | None:
        return await self._send_async(key, "HEAD", lambda: self._ask_async(key, ByteRange(0, 0)))

    def exists(self, key: str) -> bool:
        return self._head(key) is not None

    async def exists_async(self, key: str) -> bool:
        return await self._head_async(key) is not None

    def getsize(self, key: str) -> int | None:
        head = self._head(key)
        return None if head is None else head.size

    async def getsize_async(self, key: str) -> int | None:
        head = await self._head_async(key)
        return None if head is None else head.size

    def version(self, key: str) -> Version | None:
        head = self._head(key)
        return None if head is None else head.version

    def delete_prefix(self, prefix: str) -> None:
        """Remove every key under `prefix`, and only those."""
        self._check_writable(prefix)
        super().delete_prefix(prefix)

    async def set_if_not_exists_async(self, key: str, value: Buffer) -> bool:
        """Call `set_if_not_exists` asynchronously."""
        if not self.supports_conditional_writes:
            return await super().set_if_not_exists_async(key, value)
        try:
            await self.set_async(key, value, if_match=None)
        except ConflictError:
            return False
        return True

    # -- updating ----------------------------------------------------------------------------------------------

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Read, change and replace one value: a compare-and-swap loop where the place has conditional writes.

        Elsewhere it holds a lock of this process, and writers in other processes can undo one another.
        """
        if not self.supports_conditional_writes:
            super().update(key, change)
            return
        self._check_writable(key)
        # Threads of one process take turns, so that they do not use up each other's rounds.
        with self.lock(key):
            for number in range(_CAS_ROUNDS):
                old, version = self._with_version(key, *self.fetch_versioned([Fetch(key)]))
                new = change(old)
                try:
                    if new is not None:
                        self.set(key, new, if_match=version)
                    elif old is not None:
                        self._delete_version(key, version)
                    return
                except ConflictError:
                    time.sleep(_cas_pause(number))
        raise self._never_alone(key)

    async def update_async(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Call `update` asynchronously."""
        if not self.supports_conditional_writes:
            await super().update_async(key, change)
            return
        self._check_writable(key)
        for number in range(_CAS_ROUNDS):
            old, version = self._with_version(key, *await self.fetch_versioned_async([Fetch(key)]))
            new = await asyncio.to_thread(change, old)  # it may decode and encode
            try:
                if new is not None:
                    await self.set_async(key, new, if_match=version)
                elif old is not None:
                    await asyncio.to_thread(self._delete_version, key, version)
                return
            except ConflictError:
                await asyncio.sleep(_cas_pause(number))
        raise self._never_alone(key)

    def _with_version(
        self, key: str, answers: Sequence[list[Buffer] | None], versions: Sequence[Version | None]
    ) -> tuple[Buffer | None, Version | None]:
        """The one value that was fetched. Raises `StoreError` where its version is not known."""
        if answers[0] is None:
            return None, None
        if versions[0] is None:
            raise StoreError(
                "the server sends no version (ETag), so that an update could undo another",
                store=self.url,
                key=key,
                hint="Write whole values, or use a server with ETags",
            )
        return answers[0][0], versions[0]

    def _delete_version(self, key: str, version: Version | None) -> None:
        """Removes `key` if it still has that version. Between the look and the deletion there is a gap of one round
        trip, for want of a conditional delete in the client libraries."""
        if self.version(key) != version:
            raise ConflictError("another writer was faster", store=self.url, key=key)
        self.delete(key)

    def _never_alone(self, key: str) -> ConflictError:
        return ConflictError("other writers were always faster", store=self.url, key=key, got=f"{_CAS_ROUNDS} rounds")


# -- doing several things at once --------------------------------------------------------------------------------


class Flights:
    """Requests on their way, as tasks of the running loop; leaving cancels those that are still underway."""

    def __init__(self, ask: Callable[[str, ByteRange | None], Coroutine[Any, Any, Answer | None]]) -> None:
        self._ask = ask
        self._landed: asyncio.Queue[asyncio.Task[Answer | None]] = asyncio.Queue()
        self.underway: dict[asyncio.Task[Answer | None], Want] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self.underway:
            task.cancel()
        await asyncio.gather(*self.underway, return_exceptions=True)

    def send(self, wants: Iterable[Want]) -> None:
        """Begin requests."""
        for want in wants:
            task = asyncio.create_task(self._ask(want.job.key, want.span))
            self.underway[task] = want
            task.add_done_callback(self._landed.put_nowait)

    async def next(self) -> list[tuple[Want, Answer | None]]:
        """What has landed; waits for the first. Raises what a request raised."""
        tasks = [await self._landed.get()]
        while not self._landed.empty():
            tasks.append(self._landed.get_nowait())
        return [(self.underway.pop(task), task.result()) for task in tasks]


def run_side_by_side(calls: Sequence[Callable[[], T]]) -> list[T]:
    """The results of `calls`, in order, each call in its own thread of the pool. The first error ends the rest."""
    if len(calls) < 2:
        return [call() for call in calls]
    pool = _thread_pool()
    futures: list[Future[T]] = [pool.submit(contextvars.copy_context().run, call) for call in calls]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


async def gather_or_cancel(calls: Sequence[Awaitable[T]]) -> list[T]:
    """The results of `calls`, in order. The first error, or being cancelled, cancels the rest."""
    if len(calls) == 1:
        return [await calls[0]]
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _thread_pool() -> ThreadPoolExecutor:
    global _pool
    with _making:
        if _pool is None:
            _pool = ThreadPoolExecutor(POOL_SIZE, thread_name_prefix="tessarr-requests")
        return _pool


def _forget_pool() -> None:
    """A forked child has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


# -- small things ------------------------------------------------------------------------------------------------


def _checked(answer: Answer, span: ByteRange | None) -> Answer:
    """`answer`, if it is as long as it must be."""
    if answer.size is None:
        return answer
    got = byte_view(answer.body).nbytes
    if span is None:
        # A client may hand over only the head of a big object; the rest is then asked for.
        wanted = got if PIECE <= got < answer.size else answer.size
    else:
        start, stop = span.bounds(answer.size)
        if span.stop is not None and span.stop <= span.start:
            return answer
        whole = answer.start == 0 and got == answer.size
        wanted = got if whole else stop - start
    if got != wanted:
        raise Fault("again", f"{got} bytes where {wanted} were announced", outcome="slow_down")
    return answer


def _nbytes(answer: object) -> int:
    return byte_view(answer.body).nbytes if isinstance(answer, Answer) else 0


def _cas_pause(number: int) -> float:
    return random.uniform(0, min(0.005 * 2 ** min(number, 8), 0.5))
