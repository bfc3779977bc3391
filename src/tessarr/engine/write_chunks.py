"""How changed chunks get into the store, whichever engine changes them.

A chunk that is covered is replaced without being read. Any other change is merged into what is stored, under the store's
lock for that key (`Store.splice`), so that concurrent writers of one chunk or shard lose nothing; nor is a replacement
undone by a merge that began before it (`replace`). To a store behind a network many values travel side by side, while only as
many as there are processors are encoded at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import cast

from tessarr.common.segments import Piece, Stored, join
from tessarr.engine.base import ChunkWrite, WritePlan
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.processors import processors
from tessarr.engine.run import BATCH_NBYTES
from tessarr.errors import BaseZarrError, StoreError
from tessarr.stores.functions import notices_writes, replace
from tessarr.stores.protocols import Remote
from tessarr.types import Buffer, Coords


def store_chunks(bound: BoundArray, writes: WritePlan) -> None:
    """Carry out `writes`."""
    if len(writes) == 1:
        for write in writes:
            store_chunk(bound, write, writes.forget)
    elif bound.access.remote:
        from tessarr.stores.remote import loop

        loop.run(store_chunks_async(bound, writes))
    else:
        for_each(lambda write: store_chunk(bound, write, writes.forget), writes)


async def store_chunks_async(bound: BoundArray, writes: WritePlan) -> None:
    """Call `store_chunks` asynchronously."""
    import asyncio

    from tessarr.stores.remote.loop import gather_or_cancel

    if not bound.access.remote:
        await asyncio.to_thread(store_chunks, bound, writes)
        return
    if not len(writes):
        return
    encoding = asyncio.Semaphore(processors())
    rest = iter(writes)

    async def work() -> None:
        for write in rest:
            await _store_async(bound, write, encoding, writes.forget)

    await gather_or_cancel([work() for _ in range(_at_once(bound, writes))])


def store_chunk(bound: BoundArray, write: ChunkWrite, forget: Callable[[str], object]) -> None:
    """Carry out one write."""
    with changing(bound, write.coords, write.key, forget):
        if not write.covers:
            bound.store.splice(write.key, write.change)
        else:
            pieces = write.change(None)
            replace(bound.store, write.key, None if pieces is None else whole(pieces))


async def _store_async(
    bound: BoundArray, write: ChunkWrite, encoding: AbstractAsyncContextManager[object], forget: Callable[[str], object]
) -> None:
    from tessarr.stores.remote.loop import in_caller_thread, in_thread

    with changing(bound, write.coords, write.key, forget):
        if not write.covers:
            await bound.store.splice_async(write.key, write.change)
            return
        async with encoding:
            pieces = await in_thread(write.change, None)
        value = None if pieces is None else whole(pieces)
        if not notices_writes(bound.store):
            await in_caller_thread(replace, bound.store, write.key, value)
        elif value is None:
            await bound.store.delete_async(write.key)
        else:
            await bound.store.set_async(write.key, value)


@contextmanager
def changing(bound: BoundArray, coords: Coords, key: str, forget: Callable[[str], object]) -> Iterator[None]:
    """Around the change of a stored chunk: errors say where, and what is kept of the old value is forgotten."""
    try:
        yield
    except (BaseZarrError, StoreError) as error:
        error.at(store=bound.store.url, path="/" + bound.path, chunk=coords, key=key)
        raise
    finally:
        forget(key)


def whole(pieces: list[Piece], old: Stored | None = None) -> Buffer:
    """The value that pieces, some of them ranges of `old`, make. A single piece is new."""
    return join(pieces, old) if len(pieces) > 1 else cast("Buffer", pieces[0])


def _at_once(bound: BoundArray, writes: WritePlan) -> int:
    """How many chunks may be in flight to the store together."""
    at_once = bound.store.requests_at_once if isinstance(bound.store, Remote) else 1
    return max(1, min(len(writes), at_once, BATCH_NBYTES // max(1, writes.nbytes)))
