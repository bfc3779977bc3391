"""What every store behind a network shares: coalesced requests, the concurrency limit, retry, compare-and-swap updates.

Such a store is written once, as coroutines; its synchronous methods run them in the process's loop
(`tessarr.stores.remote.loop`). A subclass says how to send one request (`_request`), what an error of its client means
(`_fault`), and how to write, delete and list. `fetch_one` turns what is wanted of one value into as few requests as
`tessarr.stores.remote.coalesce` needs, sends them side by side under the concurrency limit of the origin, and joins them
to parts of one version.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from tessarr.common.segments import flat
from tessarr.errors import ConflictError, StoreError
from tessarr.stores.base import _STAGED, ANY, Any_, Listing, Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import Fetch, Fetched, Version, version_of
from tessarr.stores.remote.coalesce import PIECE, Piece, gather, plan_spans, split
from tessarr.stores.remote.limiter import RequestBudget
from tessarr.stores.remote.loop import gather_or_cancel, in_caller_thread, in_thread, run
from tessarr.stores.remote.retry import Fault, Journal, RetryPolicy
from tessarr.types import Buffer, ByteRange

T = TypeVar("T")
_List: TypeAlias = list

_CAS_ROUNDS = 200
_TORN_ROUNDS = 5


class Answer(NamedTuple):
    """What one request for bytes brought."""

    body: Buffer
    start: int
    """Where in the object `body` begins."""
    size: int | None
    """Bytes of the whole object, where the answer tells."""
    version: Version | None


class NetworkStore(Store):
    """A store behind a network. See the head of this file."""

    is_remote = True
    supports_conditional_writes = False
    """`set(if_match=…)` is atomic, so that `update` needs no lock."""
    requests_at_once = 64
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

    async def _request(self, key: str, byte_range: ByteRange | None) -> Answer:
        """Send one request. ``ByteRange(0, 0)`` asks for size and version alone."""
        raise NotImplementedError

    def _fault(self, error: Exception) -> Fault | None:
        """What `error`, raised by the client library, means; ``None``: it is not about the request."""
        raise NotImplementedError

    # -- one request -----------------------------------------------------------------------------------------------

    async def _send(self, key: str, operation: str, call: Callable[[], Awaitable[T]]) -> T | None:
        """The answer of `call`, with retries as the table in `tessarr.stores.remote.retry` says; ``None``: no such key."""
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

    async def _get_span(self, key: str, span: ByteRange | None) -> Answer | None:
        async def call() -> Answer:
            return _checked(await self._request(key, span), span)

        return await self._send(key, "GET", call)

    async def _head(self, key: str) -> Answer | None:
        return await self._send(key, "HEAD", lambda: self._request(key, ByteRange(0, 0)))

    # -- reading -----------------------------------------------------------------------------------------------

    async def fetch_one(self, request: Fetch) -> Fetched | None:
        """The value, or the ranges of it, that `request` names, all of one version; ``None``: no such key.

        Raises `StoreError` for an object that others replace again and again while it is read.
        """
        key, ranges = request if self._ranges_work else Fetch(request.key)
        for _ in range(_TORN_ROUNDS):
            answers = await self._get_spans(key, _first_spans(ranges))
            if answers is None:
                return None
            if ranges is None and (rest := _rest(answers)):  # the client handed over only the head of a big object
                more = await self._get_spans(key, rest)
                if more is None:
                    continue
                answers += more
            versions = {answer.version for answer in answers} - {None}
            if len(versions) < 2:
                return Fetched(_parts(answers, request.ranges), versions.pop() if versions else None)
        raise StoreError(
            "the object changed while it was being read", store=self.url, key=key, got=f"{_TORN_ROUNDS} times"
        )

    async def _get_spans(self, key: str, spans: Sequence[ByteRange | None]) -> _List[Answer] | None:
        if len(spans) == 1:
            found = [await self._get_span(key, spans[0])]
        else:
            found = await gather_or_cancel([self._get_span(key, span) for span in spans])
        present = [answer for answer in found if answer is not None]
        return present if len(present) == len(found) else None

    async def fetch_async(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Call `fetch` asynchronously."""
        if len(requests) == 1:
            return [await self.fetch_one(requests[0])]
        wanted = _by_key(requests)
        found = dict(zip(wanted, await gather_or_cancel([self.fetch_one(one) for one in wanted.values()]), strict=True))
        return [_share(found[request.key], wanted[request.key], request) for request in requests]

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """Several values or parts of them, each as a `Fetched`; requests for different keys are in flight together."""
        return run(self.fetch_async(requests))

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        found = await self.fetch_one(Fetch(key, None if byte_range is None else (byte_range,)))
        return None if found is None else found[0]

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return run(self.get_async(key, byte_range))

    async def get_ranges_async(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return await self.fetch_one(Fetch(key, tuple(ranges)))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        return run(self.get_ranges_async(key, ranges))

    async def get_partial_values_async(
        self, key_ranges: Iterable[tuple[str, ByteRange | None]]
    ) -> _List[Buffer | None]:
        requests = [Fetch(key, None if part is None else (part,)) for key, part in key_ranges]
        return [None if found is None else found[0] for found in await self.fetch_async(requests)]

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange | None]]) -> _List[Buffer | None]:
        return run(self.get_partial_values_async(key_ranges))

    async def exists_async(self, key: str) -> bool:
        return await self._head(key) is not None

    def exists(self, key: str) -> bool:
        return run(self.exists_async(key))

    async def getsize_async(self, key: str) -> int | None:
        head = await self._head(key)
        return None if head is None else head.size

    def getsize(self, key: str) -> int | None:
        return run(self.getsize_async(key))

    async def version_async(self, key: str) -> Version | None:
        """Call `version` asynchronously."""
        head = await self._head(key)
        return None if head is None else head.version

    def version(self, key: str) -> Version | None:
        return run(self.version_async(key))

    # -- writing -----------------------------------------------------------------------------------------------

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        raise NotImplementedError

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        return run(self.set_async(key, value, if_match=if_match))

    async def set_if_not_exists_async(self, key: str, value: Buffer) -> bool:
        if not self.supports_conditional_writes:
            return await in_caller_thread(super().set_if_not_exists, key, value)
        try:
            await self.set_async(key, value, if_match=None)
        except ConflictError:
            return False
        return True

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        return run(self.set_if_not_exists_async(key, value))

    async def delete_async(self, key: str) -> None:
        raise NotImplementedError

    def delete(self, key: str) -> None:
        run(self.delete_async(key))

    async def delete_many_async(self, keys: Iterable[str]) -> None:
        await gather_or_cancel([self.delete_async(key) for key in keys])

    def delete_many(self, keys: Iterable[str]) -> None:
        run(self.delete_many_async(keys))

    async def delete_prefix_async(self, prefix: str) -> None:
        """Remove every key under `prefix`, and only those."""
        self._check_writable(prefix)
        await self.delete_many_async(await self.list_prefix_async(prefix))

    def delete_prefix(self, prefix: str) -> None:
        run(self.delete_prefix_async(prefix))

    async def replace_prefix_async(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        self._check_writable(prefix)
        staged = {f"{prefix}{_STAGED}/{number}": value for number, value in enumerate(items.values())}
        old = await self.list_prefix_async(prefix) if self.supports_listing else []
        await gather_or_cancel([self.set_async(key, value) for key, value in staged.items()])
        await self.delete_many_async(key for key in old if key not in items)
        for key, value in items.items():
            await self.set_async(key, value)
        await self.delete_many_async(staged)

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        run(self.replace_prefix_async(prefix, items))

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        raise NotImplementedError

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return iter(run(self.list_prefix_async(prefix)))

    async def list_dir_async(self, prefix: str) -> Listing:
        raise NotImplementedError

    def list_dir(self, prefix: str) -> Listing:
        return run(self.list_dir_async(prefix))

    async def getsize_prefix_async(self, prefix: str) -> int:
        sizes = await gather_or_cancel([self.getsize_async(key) for key in await self.list_prefix_async(prefix)])
        return sum(size or 0 for size in sizes)

    def getsize_prefix(self, prefix: str) -> int:
        return run(self.getsize_prefix_async(prefix))

    # -- updating ----------------------------------------------------------------------------------------------

    async def update_async(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """Read, change and replace one value: a compare-and-swap loop where the place has conditional writes.

        Elsewhere it holds a lock of this process, and writers in other processes can undo one another.
        """
        if not self.supports_conditional_writes:
            await in_caller_thread(super().update, key, change)
            return
        self._check_writable(key)
        for number in range(_CAS_ROUNDS):
            found = await self.fetch_one(Fetch(key))
            version = None if found is None else self._known_version(key, found)
            new = await in_thread(change, None if found is None else found[0])  # it may decode and encode
            try:
                if new is not None:
                    await self.set_async(key, new, if_match=version)
                elif found is not None:
                    await self._delete_version(key, version)
                return
            except ConflictError:
                await asyncio.sleep(_back_off(number))
        raise ConflictError("other writers were always faster", store=self.url, key=key, got=f"{_CAS_ROUNDS} rounds")

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        if not self.supports_conditional_writes:
            super().update(key, change)
            return
        # Threads of one process take turns, so that they do not use up each other's rounds.
        with self.lock(key):
            run(self.update_async(key, change))

    def _known_version(self, key: str, found: Fetched) -> Version:
        version = version_of(found)
        if version is None:
            raise StoreError(
                "the server sends no version (ETag), so that an update could undo another",
                store=self.url,
                key=key,
                hint="Write whole values, or use a server with ETags",
            )
        return version

    async def _delete_version(self, key: str, version: Version | None) -> None:
        """Remove `key` if it still has that version. Between the look and the deletion there is a gap of one round
        trip, because the client libraries have no conditional delete."""
        if await self.version_async(key) != version:
            raise ConflictError("another writer was faster", store=self.url, key=key)
        await self.delete_async(key)


# -- from requests to parts ------------------------------------------------------------------------------------------


def _by_key(requests: Sequence[Fetch]) -> dict[str, Fetch]:
    """What is wanted of each key by all requests together; the whole value where one of them wants that."""
    wanted: dict[str, Fetch] = {}
    for key, ranges in requests:
        so_far = wanted.get(key, Fetch(key, ()))
        both = None if ranges is None or so_far.ranges is None else (*so_far.ranges, *ranges)
        wanted[key] = Fetch(key, both)
    return wanted


def _share(found: Fetched | None, shared: Fetch, request: Fetch) -> Fetched | None:
    """What one request gets of the response to the `shared` one."""
    if found is None or shared == request:
        return found
    if shared.ranges is not None:
        places = {part: number for number, part in enumerate(shared.ranges)}
        return Fetched([found[places[part]] for part in request.ranges or ()], found.version)
    view = flat(found[0])
    parts = [ByteRange(0)] if request.ranges is None else request.ranges
    return Fetched([view[slice(*part.bounds(view.nbytes))].data for part in parts], found.version)


def _first_spans(ranges: Sequence[ByteRange] | None) -> list[ByteRange | None]:
    if ranges is None:
        return [None]
    spans: list[ByteRange | None] = [span.byte_range for span in plan_spans(ranges)]
    return spans or [ByteRange(0, 0)]


def _rest(answers: Sequence[Answer]) -> list[ByteRange | None]:
    """What is missing of an object of which `answers` has the head."""
    (head,) = answers
    got = byte_view(head.body).nbytes
    return [*split(got, head.size, cap=PIECE)] if head.size is not None and got < head.size else []


def _parts(answers: Sequence[Answer], ranges: Sequence[ByteRange] | None) -> list[Buffer]:
    pieces = [Piece(answer.start, byte_view(answer.body).toreadonly()) for answer in answers]
    pieces = sorted((piece for piece in pieces if piece.body.nbytes), key=lambda piece: piece.start)
    sizes = [answer.size or 0 for answer in answers]
    size = max([*sizes, *(piece.start + piece.body.nbytes for piece in pieces)])
    return [gather(pieces, part, size) for part in ((ByteRange(0),) if ranges is None else ranges)]


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


def _back_off(number: int) -> float:
    return random.uniform(0, min(0.005 * 2 ** min(number, 8), 0.5))
