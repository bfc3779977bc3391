"""Base class of remote stores: coalesced requests, concurrency limit, retry, compare-and-swap updates.

A remote store is written once, as coroutines, which its synchronous methods run: coroutines for one value on the caller's
thread, where the client's calls block (these coroutines await only functions of `tessarr.stores.remote.loop`), and coroutines
for many values in an event loop. A subclass sends one request (`_request`), classifies errors of its client (`_fault`), and
writes, deletes and lists. `fetch_one` coalesces the ranges of one value into few requests (`tessarr.stores.remote.coalesce`),
sends these concurrently under the concurrency limit of the origin, and cuts the ranges of one version out of the responses.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from tessarr.common.segments import flat
from tessarr.errors import ConflictError, StoreError
from tessarr.stores.asynchronous import AsyncStore
from tessarr.stores.buffers import byte_view
from tessarr.stores.compare_and_swap import Versioned, compare_and_swap
from tessarr.stores.fetch import UNCHANGED, Fetch, Fetched, Unchanged, Version
from tessarr.stores.protocols import ConditionalSet, GetIfChanged, fallback
from tessarr.stores.remote.coalesce import PART_SIZE, SpanBytes, extract, extract_all, plan_spans, split
from tessarr.stores.remote.limiter import ConcurrencyLimiter, Outcome
from tessarr.stores.remote.loop import gather_or_cancel, in_thread, run_blocking, sleep
from tessarr.stores.remote.retry import Fault, RequestError, RetryPolicy, RetryState
from tessarr.types import Buffer, ByteRange

T = TypeVar("T")
_List = list

_READ_ATTEMPTS = 5
_WHOLE = (None,)
_NOTHING = ByteRange(0, 0)
"""Requests only the size and the version of an object."""
_VERSION = (_NOTHING,)


class RangeResponse(NamedTuple):
    """Response to one request for bytes."""

    body: Buffer
    start: int
    """Offset of `body` in the object."""
    size: int | None
    """Size of the whole object in bytes; ``None``: not in the response."""
    version: Version | None


async def with_retries(
    call: Callable[[], Awaitable[T]],
    fault_of: Callable[[Exception], Fault | None],
    begin: Callable[[float], RetryState],
    *,
    limiter: ConcurrencyLimiter | None = None,
    span: ByteRange | None = None,
) -> T | None:
    """Await `call` until it succeeds, by the table in `tessarr.stores.remote.retry`; ``None``: no such key.

    This is the only loop that retries. `fault_of` classifies an error (``None``: it is raised). `begin` gets the start of the
    first attempt, by `time.monotonic`, and returns the state of the retries: it is called after the first failure. Each
    attempt has a slot of `limiter`. A `RangeResponse` is checked to have the length of `span` (``None``: of the whole object).
    """
    began, state = time.monotonic(), None
    while True:
        if limiter is not None:
            await limiter.acquire()
        outcome: Outcome = "neutral"
        nbytes = 0
        try:
            answer = await call()
            if isinstance(answer, RangeResponse):
                nbytes = memoryview(answer.body).nbytes
                if answer.size != nbytes and span != _NOTHING:
                    _check_length(answer, nbytes, span)
            outcome = "ok"
            return answer
        except Exception as error:
            fault = error if isinstance(error, Fault) else fault_of(error)
            if fault is None:
                raise
            outcome = fault.outcome
        finally:
            if limiter is not None:
                limiter.release(outcome, nbytes=nbytes)
        if fault.kind == "missing":
            return None
        state = state or begin(began)
        await sleep(state.pause(fault))


class NetworkStore(AsyncStore):
    """A store behind a network. See the head of this file."""

    retry: RetryPolicy = RetryPolicy()
    _limiter: ConcurrencyLimiter
    _reads_conditionally = False
    """The client can send conditional reads (`_request_if_changed`)."""
    ranges_work = True
    """``False`` after a server returned the whole object for a range; then whole objects are fetched."""

    def has_ability(self, ability: type) -> bool:
        """Whether places of this kind have `ability`: `GetIfChanged` where the client sends conditional reads."""
        return self._reads_conditionally if ability is GetIfChanged else super().has_ability(ability)

    def _run_one(self, call: Coroutine[object, object, T]) -> T:
        return run_blocking(call)

    # -- for subclasses ------------------------------------------------------------------------------------------

    async def _request(self, key: str, byte_range: ByteRange | None) -> RangeResponse:
        """Send one request. ``ByteRange(0, 0)`` requests only size and version."""
        raise NotImplementedError

    async def _request_if_changed(self, key: str, version: Version) -> RangeResponse:
        """Send one request for the value unless it has that version. Raises a fault of status 304 when it has."""
        raise NotImplementedError

    def _fault(self, error: Exception) -> Fault | None:
        """Classify `error`, raised by the client library; ``None``: the error does not concern the request."""
        raise NotImplementedError

    # -- one request -----------------------------------------------------------------------------------------------

    def _send(
        self, key: str, operation: str, call: Callable[[], Awaitable[T]], *, span: ByteRange | None = None
    ) -> Awaitable[T | None]:
        """Await `call` by `with_retries`, under the concurrency limit of the origin; ``None``: no such key.

        A `RangeResponse` is checked to have the length of `span` (``None``: of the whole object).
        """
        return with_retries(
            call,
            self._fault,
            lambda began: RetryState(self.retry, store=self.url, key=key, operation=operation, began=began),
            limiter=self._limiter,
            span=span,
        )

    async def _head(self, key: str) -> RangeResponse | None:
        return await self._send(key, "HEAD", partial(self._request, key, _NOTHING), span=_NOTHING)

    # -- reading -----------------------------------------------------------------------------------------------

    async def fetch_one(self, request: Fetch) -> Fetched | None:
        """Read the value, or ranges of the value, all of one version; ``None``: no such key.

        Raises `StoreError` for an object that other writers replace during every attempt to read it.
        """
        key, ranges = request
        if not self.ranges_work:
            ranges = None
        for _ in range(_READ_ATTEMPTS):
            spans: Sequence[ByteRange | None] = _WHOLE
            if ranges is not None:
                spans = ranges if ranges == _VERSION else plan_spans(ranges) or _VERSION
            if len(spans) == 1:
                only = await self._send(key, "GET", partial(self._request, key, spans[0]), span=spans[0])
                if only is None:
                    return None
                body = memoryview(only.body)
                if request.ranges is None:
                    answered = only.size is None or only.size == body.nbytes
                else:
                    answered = request.ranges == ((only.start, only.start + body.nbytes),)
                if answered:
                    return Fetched([body.toreadonly()], only.version, only.size)
                answers = [only]
            else:
                found = await self._get_spans(key, spans)
                if found is None:
                    return None
                answers = found
            if ranges is None and (
                rest := _remaining_spans(answers[0])
            ):  # the response has only the head of the object
                more = await self._get_spans(key, rest)
                if more is None:
                    continue
                answers += more
                del more  # so that `answers` alone holds them
            versions = {answer.version for answer in answers} - {None}
            if len(versions) < 2:
                sizes = {answer.size for answer in answers} - {None}
                return Fetched(
                    _parts(answers, request.ranges),
                    versions.pop() if versions else None,
                    sizes.pop() if len(sizes) == 1 else None,
                )
        raise StoreError(
            "the object changed while it was being read", store=self.url, key=key, got=f"{_READ_ATTEMPTS} times"
        )

    async def _get_spans(self, key: str, spans: Sequence[ByteRange | None]) -> _List[RangeResponse] | None:
        found = await gather_or_cancel(
            [self._send(key, "GET", partial(self._request, key, span), span=span) for span in spans]
        )
        present = [answer for answer in found if answer is not None]
        return present if len(present) == len(found) else None

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        if len(requests) == 1:
            return [await self.fetch_one(requests[0])]
        wanted = _by_key(requests)
        found = dict(zip(wanted, await gather_or_cancel([self.fetch_one(one) for one in wanted.values()]), strict=True))
        return [_select(found[request.key], wanted[request.key], request) for request in requests]

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = await self.fetch_one(Fetch(key, None if byte_range is None else (byte_range,)))
        return None if found is None else found[0]

    async def get_if_changed_async(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        """Read a value by one conditional request (`_request_if_changed`), which an unchanged value answers without a body."""
        if version is None or not self._reads_conditionally:
            return await self._get_if_changed_by_head(key, version)
        try:
            answer = await self._send(key, "GET", partial(self._request_if_changed, key, version))
        except RequestError as error:
            if error.status == 304:
                return UNCHANGED
            raise
        if answer is None:
            return None
        if answer.version == version:  # a server that ignores conditions
            return UNCHANGED
        if answer.version is None or _remaining_spans(answer):  # a server that names no version, or a large value
            return await self._get_if_changed_by_head(key, version)
        return Fetched([memoryview(answer.body).toreadonly()], answer.version)

    async def _get_if_changed_by_head(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        now = None if version is None else await self.version_async(key)
        if now is not None and now == version:
            return UNCHANGED
        found = await self.fetch_one(Fetch(key))
        if found is not None and found.version is None:  # a GET that names no version: that of a HEAD before it
            now = await self.version_async(key)
            found = await self.fetch_one(Fetch(key))
            return None if found is None else Fetched(found, now)
        return found

    def get_if_changed(self, key: str, version: Version | None) -> Fetched | Unchanged | None:
        return self._run_one(self.get_if_changed_async(key, version))

    async def get_ranges_async(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return await self.fetch_one(Fetch(key, tuple(ranges)))

    async def exists_async(self, key: str) -> bool:
        return await self._head(key) is not None

    async def getsize_async(self, key: str) -> int | None:
        head = await self._head(key)
        return None if head is None else head.size

    async def version_async(self, key: str) -> Version | None:
        head = await self._head(key)
        return None if head is None else head.version

    # -- updating ----------------------------------------------------------------------------------------------

    async def update_async(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Read, change and replace one value: by compare-and-swap where the place has conditional writes.

        Elsewhere under a lock of this process, so that concurrent updates in other processes can be lost.
        """
        if not isinstance(self, ConditionalSet):
            await super().update_async(key, change)
            return
        await self._compare_and_swap(key, change)

    @fallback
    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        if not isinstance(self, ConditionalSet):
            super().update(key, change)
            return
        # Under a lock, so that threads of one process do not use up each other's attempts.
        with self.lock(key):
            run_blocking(self._compare_and_swap(key, change))

    def _compare_and_swap(
        self, key: str, change: Callable[[Buffer | None], Buffer | None]
    ) -> Coroutine[Any, Any, None]:
        self._check_writable(key)
        return compare_and_swap(
            partial(self._read_versioned, key),
            partial(self._swap, key),
            lambda old: in_thread(change, old),  # `change` may decode and encode
            sleep=sleep,
            store=self.url,
            key=key,
        )

    async def _read_versioned(self, key: str) -> Versioned:
        found = await self.fetch_one(Fetch(key))
        return (None, None) if found is None else (found[0], found.version)

    async def _swap(self, key: str, version: Version | None, new: Buffer | None) -> None:
        """Replace or remove the value if it has that version.

        A removal races with other writers for one round trip after the check, because the client libraries have no
        conditional delete.
        """
        if new is not None:
            await self.set_async(key, new, if_match=version)
        elif await self.version_async(key) != version:
            raise ConflictError("another writer was faster", store=self.url, key=key)
        else:
            await self.delete_async(key)


# -- from responses to ranges ----------------------------------------------------------------------------------------


def _by_key(requests: Sequence[Fetch]) -> dict[str, Fetch]:
    """Merge the requests of each key: all their ranges, or the whole value where one request is for the whole value."""
    wanted: dict[str, Fetch] = {}
    for key, ranges in requests:
        so_far = wanted.get(key, Fetch(key, ()))
        both = None if ranges is None or so_far.ranges is None else (*so_far.ranges, *ranges)
        wanted[key] = Fetch(key, both)
    return wanted


def _select(found: Fetched | None, shared: Fetch, request: Fetch) -> Fetched | None:
    """Select the response to `request` from the response to the merged request `shared`."""
    if found is None or shared == request:
        return found
    if shared.ranges is not None:
        places = {part: number for number, part in enumerate(shared.ranges)}
        return Fetched([found[places[part]] for part in request.ranges or ()], found.version, found.size)
    view = flat(found[0])
    parts = [ByteRange(0)] if request.ranges is None else request.ranges
    return Fetched([view[slice(*part.bounds(view.nbytes))].data for part in parts], found.version, found.size)


def _remaining_spans(head: RangeResponse) -> list[ByteRange | None]:
    """List the spans that are missing of an object of which `head` has the first bytes."""
    got = memoryview(head.body).nbytes
    return [*split(got, head.size, max_request=PART_SIZE)] if head.size is not None and got < head.size else []


def _parts(answers: list[RangeResponse], ranges: Sequence[ByteRange] | None) -> list[Buffer]:
    bodies = [SpanBytes(answer.start, byte_view(answer.body).toreadonly()) for answer in answers]
    bodies = sorted((one for one in bodies if one.body.nbytes), key=lambda one: one.start)
    sizes = [answer.size or 0 for answer in answers]
    size = max([*sizes, *(one.start + one.body.nbytes for one in bodies)])
    if ranges is not None:
        return [extract(bodies, part, size) for part in ranges]
    answers.clear()  # which hold their bodies
    return [extract_all(bodies, size)]


def _check_length(answer: RangeResponse, nbytes: int, span: ByteRange | None) -> None:
    """Raise `Fault` unless the body, of `nbytes` bytes, has the length of `span`, or of the whole object."""
    if answer.size is None:
        return
    if span is None:
        # A client may return only the head of a big object; `fetch_one` then requests the remaining spans.
        wanted = nbytes if PART_SIZE <= nbytes < answer.size else answer.size
    elif span.stop is not None and span.stop <= span.start:
        return
    else:
        start, stop = span.bounds(answer.size)
        wanted = stop - start
    if nbytes != wanted:
        raise Fault("retry", f"{nbytes} bytes where {wanted} were announced", outcome="slow_down")
