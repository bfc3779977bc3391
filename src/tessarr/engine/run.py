"""Carry out chunk reads: send what they request to the store, and give them the responses.

`run` and `run_async` are the two drivers, and the only code that waits for chunks. A remote store gets all requests at
once, as many as its concurrency limit allows are in flight, and each response is decoded while others are in flight.
Any other store is asked for what is needed in one `fetch` after another.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar

from tessarr.engine.base import ChunkReads, ReadPlan, Request, Response
from tessarr.errors import StoreError
from tessarr.stores.base import Store
from tessarr.stores.fetch import version_of
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.protocols import FetchOne, GetRanges, Remote
from tessarr.types import Buffer

BATCH_NBYTES = 256 << 20
"""Decoded bytes of the chunks that are read, or written, together: bounds the encoded bytes held at once."""
_LOCAL_BATCH_NBYTES = 64 << 20
"""The same for stores without latency, where a larger batch gains nothing."""
_SPARE_NBYTES = 4 << 20
"""What all shards of a batch that are requested whole may bring too much: at 50 ms and 100 MB/s a round trip costs as much
as 5 MB."""

_SMALL_SHARD = 64 << 10
"""The same for stores without latency: one call is cheaper than two."""

P = ParamSpec("P")
T = TypeVar("T")


class _Caller(Protocol):
    """Calls a function, here or in a thread."""

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...


_Wanted: TypeAlias = tuple[int, Request]
"""A request, and the number of the `ChunkReads` that it is of."""


def run(plans: Sequence[ReadPlan], store: Store) -> None:
    """Carry out `plans`, whose arrays are in `store`."""
    if isinstance(store, FetchOne):
        from tessarr.stores.remote import loop

        for batch in _batches(plans, BATCH_NBYTES):
            loop.run(_run_remote(batch, store, _call_inline))
        return
    waits = isinstance(store, Remote)
    for batch in _batches(plans, BATCH_NBYTES if waits else _LOCAL_BATCH_NBYTES):
        reads, wanted = _begin(batch, _remote_whole_below(batch) if waits else _whole_below(store))
        while wanted:
            wanted = _deliver(reads, wanted, store.fetch([request.fetch for _, request in wanted]))


async def run_async(plans: Sequence[ReadPlan], store: Store) -> None:
    """Call `run` asynchronously. Chunk reads run in threads, one `ChunkReads` at a time."""
    if not isinstance(store, Remote):
        await asyncio.to_thread(run, plans, store)
        return
    from tessarr.stores.remote.loop import in_thread

    for batch in _batches(plans, BATCH_NBYTES):
        await _run_remote(batch, store, in_thread)


def _whole_below(store: Store) -> int:
    """Below how many decoded bytes a shard is requested whole from a store without latency: any, where a range costs what
    the value costs."""
    if isinstance(store, MemoryStore) or not isinstance(store, GetRanges):
        return sys.maxsize
    return _SMALL_SHARD


def _remote_whole_below(batch: _Batch) -> int:
    """The same for a remote store: a shard no larger than the gap that a request may span saves a round trip."""
    from tessarr.stores.remote.coalesce import coalescing

    return min(coalescing().max_gap, _SPARE_NBYTES // batch.parts)


async def _call_inline(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on this thread, which runs no other task."""
    return function(*args, **kwargs)


class _Run(NamedTuple):
    plan: ReadPlan
    first: int
    stop: int


class _Batch(list[_Run]):
    """Parts of one or several plans that are read together."""

    @property
    def parts(self) -> int:
        return sum(run.stop - run.first for run in self)


def _batches(plans: Iterable[ReadPlan], most: int) -> Iterator[_Batch]:
    """All parts, in batches whose chunks decode to at most `most` bytes together."""
    batch, left = _Batch(), most
    for plan in plans:
        first, count = 0, len(plan)
        nbytes = max(1, plan.nbytes) if count else 1
        while first < count:
            room = left // nbytes
            if room < 1 and batch:
                yield batch
                batch, left = _Batch(), most
                continue
            stop = min(count, first + max(1, room))
            batch.append(_Run(plan, first, stop))
            left -= (stop - first) * nbytes
            first = stop
    if batch:
        yield batch


async def _run_remote(batch: _Batch, store: Store, alone: _Caller) -> None:
    """Carry out a batch; `alone` calls what computes while nothing is in flight."""
    from tessarr.stores.remote.loop import in_thread

    reads, new = await alone(_begin, batch, _remote_whole_below(batch))
    in_flight: dict[asyncio.Task[list[Any]], list[_Wanted]] = {}
    landed: asyncio.Queue[asyncio.Task[list[Any]]] = asyncio.Queue()
    try:
        while True:
            for wanted in _by_call(store, new):
                fetches = [request.fetch for _, request in wanted]
                in_flight[task := asyncio.create_task(store.fetch_async(fetches))] = wanted
                task.add_done_callback(landed.put_nowait)
            if not in_flight:
                return
            done = [await landed.get()]
            while not landed.empty():
                done.append(landed.get_nowait())
            wanted = [one for task in done for one in in_flight[task]]
            answers = [answer for task in done for answer in task.result()]
            for task in done:
                del in_flight[task]
            new = await (in_thread if in_flight else alone)(_deliver, reads, wanted, answers)
    finally:
        for task in in_flight:
            task.cancel()
        await asyncio.gather(*in_flight, return_exceptions=True)


def _by_call(store: Store, wanted: Sequence[_Wanted]) -> list[list[_Wanted]]:
    """What is requested with one call: what is wanted of one key, or, where the store takes only batches, all."""
    if not isinstance(store, FetchOne):
        return [list(wanted)] if wanted else []
    keys: dict[str, list[_Wanted]] = {}
    for one in wanted:
        keys.setdefault(one[1].fetch.key, []).append(one)
    return list(keys.values())


def _requests(reads: Sequence[ChunkReads]) -> list[_Wanted]:
    return [(number, request) for number, one in enumerate(reads) for request in one.requests()]


def _begin(batch: _Batch, whole_below: int) -> tuple[list[ChunkReads], list[_Wanted]]:
    """Begin a batch, and return what it needs first."""
    reads = [run.plan.start(run.first, run.stop, whole_below) for run in batch]
    return reads, _requests(reads)


def _deliver(
    reads: Sequence[ChunkReads], wanted: Sequence[_Wanted], answers: Sequence[list[Buffer] | None]
) -> list[_Wanted]:
    """Pass each response on to the `ChunkReads` that requested it, and return what they need next."""
    if len(answers) != len(wanted):
        raise StoreError(
            "fetch returned another number of responses than it got requests",
            expected=str(len(wanted)),
            got=str(len(answers)),
        )
    responses = [
        (number, Response(request.id, parts, None if parts is None else version_of(parts)))
        for (number, request), parts in zip(wanted, answers, strict=True)
    ]
    for number, share in groupby(sorted(responses, key=itemgetter(0)), key=itemgetter(0)):
        reads[number].receive([response for _, response in share])
    return _requests(reads)
