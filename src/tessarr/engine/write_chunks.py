"""How changed chunks get into the store, whichever engine changes them.

A chunk that is covered is replaced without being read. Any other change is merged into what is stored, under the store's
lock for that key (`Store.splice`), so that concurrent writers of one chunk or shard lose nothing; nor is a replacement
undone by a merge that began before it (`put`). To a store behind a network many values travel side by side, while only as
many as there are processors are encoded at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from functools import partial
from threading import Semaphore
from typing import NamedTuple, Protocol, cast

from tessarr.common.segments import Piece, Stored, join
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.processors import processors
from tessarr.errors import BaseZarrError, StoreError
from tessarr.stores.base import Store
from tessarr.types import Buffer, Coords

WAVE_NBYTES = 256 << 20
"""Decoded bytes of the chunks that are on their way together: bounds the encoded bytes held at once."""

Change = Callable[[Stored | None], list[Piece] | None]


class ChunkWrite(NamedTuple):
    """What is to happen to one chunk."""

    coords: Coords
    key: str
    covers: bool
    """The chunk is replaced whole."""
    change: Change
    """Makes the new value out of the old one; ``None``: nothing but fill value is left."""


class Writes(Protocol):
    """All that is to happen to the chunks of one array."""

    @property
    def nbytes(self) -> int:
        """Decoded bytes of a chunk; only asked when there is one."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[ChunkWrite]: ...

    def forget(self, key: str) -> None:
        """`key` was written: what is known of its old value is worth nothing any more."""


def store_chunks(bound: BoundArray, writes: Writes) -> None:
    """Carry out `writes`."""
    waiting = _at_once(bound, writes) if bound.store.is_remote and len(writes) > 1 else 0
    gate = Semaphore(processors()) if waiting else None
    for_each(lambda write: store_chunk(bound, write, writes.forget, gate), writes, waiting=waiting)


async def store_chunks_async(bound: BoundArray, writes: Writes) -> None:
    """Call `store_chunks` asynchronously."""
    import asyncio

    from tessarr.stores.remote.base import gather_or_cancel

    if not _awaits(bound.store):
        await asyncio.to_thread(store_chunks, bound, writes)
        return
    if not len(writes):
        return
    gate = asyncio.Semaphore(processors())
    rest = iter(writes)

    async def work() -> None:
        for write in rest:
            await _store_async(bound, write, gate, writes.forget)

    await gather_or_cancel([work() for _ in range(_at_once(bound, writes))])


def store_chunk(
    bound: BoundArray, write: ChunkWrite, forget: Callable[[str], object], gate: Semaphore | None = None
) -> None:
    """Carry out one write; `gate` bounds how many encode at a time."""
    change = write.change if gate is None else partial(_gated, gate, write.change)
    with changing(bound, write.coords, write.key, forget):
        if not write.covers:
            bound.store.splice(write.key, change)
        else:
            pieces = change(None)
            put(bound.store, write.key, None if pieces is None else whole(pieces))


def put(store: Store, key: str, value: Buffer | None) -> None:
    """Replace a whole value (``None``: delete it) that others may be updating, and that they must not undo."""
    with nullcontext() if store.update_sees_set else store.lock(key):
        if value is None:
            store.delete(key)
        else:
            store.set(key, value)


def _gated(gate: Semaphore, change: Change, old: Stored | None) -> list[Piece] | None:
    with gate:
        return change(old)


async def _store_async(
    bound: BoundArray, write: ChunkWrite, gate: AbstractAsyncContextManager[object], forget: Callable[[str], object]
) -> None:
    import asyncio

    with changing(bound, write.coords, write.key, forget):
        if not write.covers:
            await bound.store.splice_async(write.key, write.change)
            return
        async with gate:
            pieces = await asyncio.to_thread(write.change, None)
        value = None if pieces is None else whole(pieces)
        if not bound.store.update_sees_set:
            await asyncio.to_thread(put, bound.store, write.key, value)
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


def _at_once(bound: BoundArray, writes: Writes) -> int:
    """How many chunks may be on their way to the store together."""
    return max(1, min(len(writes), bound.store.requests_at_once, WAVE_NBYTES // max(1, writes.nbytes)))


def _awaits(store: Store) -> bool:
    """Whether writing is natively asynchronous; elsewhere threads of our own wait, which are more than a loop's."""
    return store.is_remote and type(store).set_async is not Store.set_async
