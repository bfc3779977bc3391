"""Store changed chunks, for either engine.

A chunk that is covered is replaced without being read. Any other change is merged into the stored value in one
`Store.splice`, so that concurrent writers of one chunk or shard lose nothing; and no merge that began before a replacement
overwrites it (`replace`). A chunk that the end of the array cuts is never covered: beyond the end may be rows of an append.
To a remote store many values are in flight concurrently, while at most as many chunks as processors are encoded at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import cast

import numpy as np

from tessarr.common.segments import Piece, Stored, flat, join, pieces_nbytes
from tessarr.engine.base import Change, ChunkWrite, WritePlan
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.processors import processors
from tessarr.engine.run import LITTLE_NBYTES, batch_nbytes
from tessarr.errors import BaseZarrError, CodecError, StoreError
from tessarr.stores.functions import notices_writes, replace
from tessarr.stores.protocols import ConditionalSet, Remote, SetMany
from tessarr.types import Buffer, Coords


def store_chunks(bound: BoundArray, writes: WritePlan) -> None:
    """Carry out `writes`."""
    if len(writes) == 1:
        for write in writes:
            store_chunk(bound, write, writes.forget)
    elif bound.access.remote:
        from tessarr.stores.remote import loop

        loop.run(store_chunks_async(bound, writes))
    elif not (isinstance(bound.store, SetMany) and _store_covered(bound.path, bound.store, writes)):
        for_each(lambda write: store_chunk(bound, write, writes.forget), writes)


def _store_covered(path: str, store: SetMany, writes: WritePlan) -> bool:
    """Store chunks, all of which are covered, by few calls. Returns whether they are stored."""
    if not len(writes):
        return True
    step = max(1, _in_batch(writes))
    for first in range(0, len(writes), step):
        stop = min(first + step, len(writes))
        keys = store.set_many(
            path, partial(writes.encode_covered, first, stop), partial(writes.stage_covered, first, stop)
        )
        if keys is None:
            return False
        for key in keys:
            writes.forget(key)
    return True


async def store_chunks_async(bound: BoundArray, writes: WritePlan) -> None:
    """Carry out `writes`, in a thread if the store has no latency."""
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
            bound.store.splice(write.key, _merging(write.change) if write.is_cut else write.change)
        else:
            pieces = write.change(None)
            replace(bound.store, write.key, None if pieces is None else whole(pieces))


async def _store_async(
    bound: BoundArray, write: ChunkWrite, encoding: AbstractAsyncContextManager[object], forget: Callable[[str], object]
) -> None:
    from tessarr.stores.remote.loop import in_caller_thread, in_thread

    is_created = write.is_cut and isinstance(
        bound.store, ConditionalSet
    )  # at no more requests, where nothing is stored
    with changing(bound, write.coords, write.key, forget):
        if not write.covers and not is_created:
            await bound.store.splice_async(write.key, _merging(write.change) if write.is_cut else write.change)
            return
        async with encoding:
            pieces = await in_thread(write.change, None)
        value = None if pieces is None else whole(pieces)
        del pieces  # which are as large
        if is_created:
            if value is None or not await bound.store.set_if_not_exists_async(write.key, value):
                await bound.store.splice_async(write.key, _merging(write.change))
        elif not notices_writes(bound.store):
            await in_caller_thread(replace, bound.store, write.key, value)
        elif value is None:
            await bound.store.delete_async(write.key)
        else:
            await bound.store.set_async(write.key, value)


def _merging(change: Change) -> Change:
    """Make the change of a cut chunk: into an old value that cannot be decoded, and has no rows to keep, it does not merge."""

    def merged(old: Stored | None) -> list[Piece] | None:
        try:
            return change(old)
        except CodecError:
            if old is None:
                raise
            return change(None)

    return merged


@contextmanager
def changing(bound: BoundArray, coords: Coords, key: str, forget: Callable[[str], object]) -> Iterator[None]:
    """Enclose the change of a stored chunk: add the place to errors, and invalidate caches of the old value."""
    try:
        yield
    except (BaseZarrError, StoreError) as error:
        error.at(store=bound.store.url, path="/" + bound.path, chunk=coords, key=key)
        raise
    finally:
        forget(key)


def whole(pieces: list[Piece], old: Stored | None = None) -> Buffer:
    """Join pieces, some of them ranges of `old`, to a value. A single piece is never a range of `old`.

    Without `old`, pieces are removed one by one, so that the value is not in memory twice.
    """
    if len(pieces) == 1:
        return cast("Buffer", pieces[0])
    if old is not None:
        return join(pieces, old)
    value, end = np.empty(pieces_nbytes(pieces), np.uint8), 0
    pieces.reverse()
    while pieces:
        piece = flat(cast("Buffer", pieces.pop()))
        value[end : end + piece.size] = piece
        end += piece.size
    return value.data


def _at_once(bound: BoundArray, writes: WritePlan) -> int:
    """Return how many chunks may be in flight to the store concurrently."""
    at_once = bound.store.requests_at_once if isinstance(bound.store, Remote) else 1
    return max(1, min(at_once, _in_batch(writes)))


def _in_batch(writes: WritePlan) -> int:
    """Return how many chunks may be encoded, or in flight, at once."""
    if len(writes) * writes.nbytes <= LITTLE_NBYTES:
        return len(writes)
    return min(len(writes), batch_nbytes() // max(1, writes.nbytes))
