"""The reference engine: the executable specification in Python, for any codec, data type and store.

It plans (`tessarr.indexing.plan`), and for each chunk runs a generator (`tessarr.engine.reading`) that asks for bytes. Three
drivers answer: for local stores every chunk is fetched and decoded by one of the shared threads; for remote stores all
chunks' requests go out together in waves (shard indexes first, data second); the asynchronous twin awaits the same waves.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Semaphore
from typing import Any

import numpy as np
import numpy.typing as npt

from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each, processors
from tessarr.engine.reading import Answer, Reading, read_part
from tessarr.engine.waves import Piece, at_once, read_waves, read_waves_async
from tessarr.engine.writing import write_part, write_part_async
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
            read_waves(store, [Piece(bound, selection, out)])
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

    async def read_async(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """See `Engine.read_async`."""
        import asyncio

        if not bound.store.is_remote:
            await asyncio.to_thread(self.read, bound, selection, out)
            return
        await read_waves_async(bound.store, [Piece(bound, selection, out)])

    def write(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write`."""
        value = np.broadcast_to(value, selection.shape)
        parts = plan(selection, bound.axes)
        if len(parts) > 1:
            waiting = at_once(bound, parts) if bound.store.is_remote else 0
            gate = Semaphore(processors()) if waiting else None
            for_each(lambda part: write_part(bound, part, value, gate), parts, waiting=waiting)
            return
        for part in parts:
            write_part(bound, part, value)

    async def write_async(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write_async`."""
        import asyncio

        from tessarr.stores.network import gather_or_cancel

        if not _awaits(bound.store):
            await asyncio.to_thread(self.write, bound, selection, value)
            return
        value = np.broadcast_to(value, selection.shape)
        parts = iter(plan(selection, bound.axes))
        gate = asyncio.Semaphore(processors())

        async def work() -> None:
            for part in parts:
                await write_part_async(bound, part, value, gate)

        await gather_or_cancel([work() for _ in range(at_once(bound, plan(selection, bound.axes)))])


def _awaits(store: Store) -> bool:
    """Whether writing is natively asynchronous; elsewhere threads of our own wait, which are more than a loop's."""
    return store.is_remote and type(store).set_async is not Store.set_async


def _run(reading: Reading, store: Store) -> None:
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
