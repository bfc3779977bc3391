"""Carry out chunk reads: send their requests to the store, and deliver the responses to them.

`run` and `run_async` are the two drivers, and the only code that waits for chunks. A remote store gets all requests at
once, as many as its concurrency limit allows are in flight, and each response is decoded while others are in flight
(`_in_flight`). Requests to any other store, or for a single value, are sent in one `fetch` after another.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import NamedTuple, TypeAlias

from tessarr.engine.base import ChunkReads, ReadPlan, Request, Response
from tessarr.engine.bound import Access
from tessarr.engine.pool import INLINE_NBYTES
from tessarr.errors import StoreError
from tessarr.settings import config
from tessarr.stores.fetch import Fetched
from tessarr.types import Buffer

_LOCAL_BATCH_NBYTES = 64 << 20
"""Most decoded bytes of one batch of chunks in a store without latency, where a larger batch gains nothing."""
_REQUEST_NBYTES = 16 << 10
"""What a chunk counts at least in a batch: its requests and responses are Python objects of one to four KiB together, so that
millions of small chunks would need gigabytes."""
LITTLE_NBYTES = 1 << 20
"""So much is one batch, whatever the settings say."""
_ALONE_NBYTES = 4 << 20
"""Decoded bytes of responses for which a thread gains nothing in an event loop that runs nothing else: all requests are sent,
and the client receives their responses meanwhile."""
_SPARE_NBYTES = 4 << 20
"""Bound on the unneeded bytes of all shards in a batch that are requested whole: at 50 ms and 100 MB/s a round trip costs as
much as 5 MB."""

_Pending: TypeAlias = tuple[ChunkReads, Request]
"""A request, and the `ChunkReads` that made it."""
_Result: TypeAlias = Fetched | list[list[Buffer] | None] | None
"""Result of `Access.fetch_one` or `Store.fetch_async`."""


def batch_nbytes() -> int:
    """Return the most decoded bytes of one batch of chunks to read or write, which bound the encoded bytes in memory."""
    return int(config.get("async.nbytes"))


def run(plans: Sequence[ReadPlan], access: Access) -> None:
    """Carry out `plans`, whose arrays are in the store of `access`."""
    for batch in _batches(plans, remote=access.remote):
        wanted = _begin(batch, access)
        if access.fetch_one is not None and any(request.fetch.key != wanted[0][1].fetch.key for _, request in wanted):
            from tessarr.stores.remote.loop import LoopTask

            calls = _in_flight(wanted, batch, access, alone=True)
            with LoopTask(calls, _threads_for(wanted, batch, access)) as wait:
                wait()
            continue
        while wanted:
            responses = _responses(wanted, access.store.fetch([request.fetch for _, request in wanted]))
            wanted = [(reads, request) for reads, share in responses.items() for request in reads.receive(share)]
            del responses  # or they would be kept until the next ones are there


def _threads_for(wanted: list[_Pending], batch: list[_PartRange], access: Access) -> int:
    """Count the requests of `_in_flight`, if a thread for each costs less than a loop; else 0.

    Shards, and values that are requested in parts, have requests that follow, which would need a loop in each thread.
    """
    from tessarr.stores.remote.base import NetworkStore
    from tessarr.stores.remote.coalesce import PART_SIZE

    single = all(not run.plan.has_shards and run.plan.nbytes <= PART_SIZE for run in batch)
    return len(wanted) if single and isinstance(access.store, NetworkStore) else 0


async def run_async(plans: Sequence[ReadPlan], access: Access) -> None:
    """Call `run` asynchronously. Chunk reads run in threads, one `ChunkReads` at a time."""
    if not access.remote:
        import asyncio  # here, so that programs that never await do not load asyncio

        await asyncio.to_thread(run, plans, access)
        return
    from tessarr.stores.remote.loop import in_thread

    for batch in _batches(plans, remote=True):
        wanted = await in_thread(_begin, batch, access)
        await _in_flight(wanted, batch, access, alone=False)


class _PartRange(NamedTuple):
    """Parts ``first:stop`` of a plan."""

    plan: ReadPlan
    first: int
    stop: int


def _batches(plans: Sequence[ReadPlan], *, remote: bool) -> list[list[_PartRange]]:
    """Split all parts into batches, small chunks counted as `_REQUEST_NBYTES`."""
    most = 0
    for plan in plans:
        most += plan.parts * max(_REQUEST_NBYTES, plan.nbytes)
    if most > LITTLE_NBYTES:
        most = batch_nbytes() if remote else min(batch_nbytes(), _LOCAL_BATCH_NBYTES)
    batches: list[list[_PartRange]] = []
    batch: list[_PartRange] = []
    left = most
    for plan in plans:
        first, nbytes = 0, max(_REQUEST_NBYTES, plan.nbytes)
        while first < plan.parts:
            room = left // nbytes
            if room < 1 and batch:
                batches.append(batch)
                batch, left = [], most
                continue
            stop = min(plan.parts, first + max(1, room))
            batch.append(_PartRange(plan, first, stop))
            left -= (stop - first) * nbytes
            first = stop
    return [*batches, batch] if batch else batches


def _begin(batch: list[_PartRange], access: Access) -> list[_Pending]:
    """Start the reads of a batch. Returns their first requests."""
    whole_below = access.whole_below
    if access.remote and any(run.plan.has_shards for run in batch):
        from tessarr.stores.remote.coalesce import coalescing

        # A shard no larger than the gap that a request may span saves a round trip.
        whole_below = min(coalescing().max_gap, _SPARE_NBYTES // sum(run.stop - run.first for run in batch))
    begun = [run.plan.start(run.first, run.stop, whole_below) for run in batch]
    return [(reads, request) for reads in begun for request in reads.receive(())]


async def _in_flight(wanted: list[_Pending], batch: list[_PartRange], access: Access, *, alone: bool) -> None:
    """Send all requests at once, and the requests that follow from their responses; decode each response while others are in
    flight.

    Responses are decoded in a thread, so that the event loop is not blocked. Decoded without a thread are small responses, for
    which a thread would take longer; if the loop runs nothing but this read (`alone`), more of them, and the last responses.
    Where no loop is running, none has a thread.
    """
    from tessarr.stores.remote.loop import TaskGroup, in_thread

    fetch_one = access.fetch_one
    nbytes = max([run.plan.nbytes for run in batch], default=0)
    in_flight: TaskGroup[list[_Pending], _Result] = TaskGroup()
    try:
        while True:
            # One call for all requests of one key, or, where the store takes only batches, for all requests.
            calls: dict[str, list[_Pending]] = {}
            for one in wanted:
                calls.setdefault("" if fetch_one is None else one[1].fetch.key, []).append(one)
            for together in calls.values():
                fetches = [request.fetch for _, request in together]
                call: Coroutine[object, object, _Result] = (
                    access.store.fetch_async(fetches)
                    if fetch_one is None or len(fetches) > 1
                    else fetch_one(fetches[0])
                )
                in_flight.start(together, call)
            if not in_flight:
                return
            answered: list[_Pending] = []
            found: list[list[Buffer] | None] = []
            for together, result in await in_flight.take():
                answered += together
                if result is None or isinstance(result, Fetched):
                    found.append(result)
                else:
                    found += result
            here = len(answered) * nbytes <= (_ALONE_NBYTES if alone else INLINE_NBYTES) or (alone and not in_flight)
            wanted = []
            for reads, share in _responses(answered, found).items():
                needs = reads.receive(share) if here else await in_thread(reads.receive, share)
                wanted += [(reads, request) for request in needs]
    finally:
        await in_flight.cancel()


def _responses(wanted: Sequence[_Pending], found: Sequence[list[Buffer] | None]) -> dict[ChunkReads, list[Response]]:
    """Group the responses by the `ChunkReads` that made the requests."""
    if len(found) != len(wanted):
        raise StoreError(
            "fetch returned another number of responses than it got requests",
            expected=str(len(wanted)),
            got=str(len(found)),
        )
    responses: dict[ChunkReads, list[Response]] = {}
    for (reads, request), parts in zip(wanted, found, strict=True):
        responses.setdefault(reads, []).append(Response(request.id, parts, getattr(parts, "version", None)))
    return responses
