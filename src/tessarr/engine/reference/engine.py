"""The reference engine: the executable specification in Python, for any codec, data type and store.

It plans (`tessarr.indexing.plan`), and for each chunk runs a generator (`tessarr.engine.reference.read_chunk`) that asks
for bytes: for local stores every chunk is fetched and decoded by one of the shared threads; for remote stores all chunks'
requests go out together (`tessarr.engine.remote_read`), and the asynchronous twin awaits the same.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy.typing as npt

from tessarr.engine.base import Reading
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.reference.merge import ChunkWrites
from tessarr.engine.reference.read_chunk import Answer, PartReading, read_part
from tessarr.engine.remote_read import PartReadings, read_waves, read_waves_async
from tessarr.engine.write_chunks import store_chunk, store_chunks, store_chunks_async
from tessarr.indexing.plan import plan
from tessarr.indexing.selection import Selection
from tessarr.stores.base import Fetch, Store


class ReferenceEngine:
    """See `tessarr.engine.base.Engine`. Serves everything."""

    name = "reference"

    def supports(self, bound: BoundArray) -> str | None:
        """Always ``None``."""
        return None

    def read(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """See `Engine.read`."""
        store = bound.store
        if store.is_remote:
            read_waves(store, [self.reading(bound, selection, out)])
            return
        parts = plan(selection, bound.axes)
        if len(parts) > 1:
            for_each(lambda part: _run(read_part(bound, part, out), store), parts)
            return
        for part in parts:  # one chunk is read here, without a hop more than it needs
            reading, answer = read_part(bound, part, out), None
            with suppress(StopIteration):
                while True:
                    answer = _ask(store, reading.send(answer))

    def reading(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> Reading:
        """See `Engine.reading`."""
        return PartReadings(bound, selection, out)

    async def read_async(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """See `Engine.read_async`."""
        import asyncio

        if not bound.store.is_remote:
            await asyncio.to_thread(self.read, bound, selection, out)
            return
        await read_waves_async(bound.store, [self.reading(bound, selection, out)])

    def write(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write`."""
        writes = ChunkWrites(bound, selection, value)
        if len(writes) > 1:
            store_chunks(bound, writes)
            return
        for write in writes:
            store_chunk(bound, write, bound.forget)

    async def write_async(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write_async`."""
        await store_chunks_async(bound, ChunkWrites(bound, selection, value))


def _run(reading: PartReading, store: Store) -> None:
    """Drive one chunk's generator on this thread."""
    answer: Answer = None
    with suppress(StopIteration):
        while True:
            answer = _ask(store, reading.send(answer))


def _ask(store: Store, request: Fetch) -> Answer:
    """What a generator asked for."""
    if request.ranges is not None:
        return store.get_ranges(request.key, request.ranges)
    value = store.get(request.key)
    return None if value is None else [value]
