"""The reference engine: the executable specification in Python, for any codec, data type and store.

It plans (`tessarr.indexing.plan`), and for each chunk runs a generator (`tessarr.engine.reading`) that asks for bytes. Three
drivers answer: for local stores every chunk is fetched and decoded by one of the shared threads; for remote stores all
chunks' requests go out together in waves (shard indexes first, data second); the asynchronous twin awaits the same waves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.reading import Reading, read_part
from tessarr.engine.writing import write_part
from tessarr.indexing.plan import Part, plan
from tessarr.indexing.selection import Selection
from tessarr.stores.base import Fetch, Store
from tessarr.types import Buffer

_WAVE_NBYTES = 256 << 20
"""Decoded bytes that one wave of a remote read may be for: bounds the encoded bytes held at once."""

Answer = list[Buffer] | None


class ReferenceEngine:
    """See `tessarr.engine.base.Engine`. Serves everything."""

    name = "reference"

    def supports(self, bound: BoundArray) -> str | None:
        """Always ``None``."""
        return None

    def read(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """See `Engine.read`."""
        parts = plan(selection, bound.axes)
        store = bound.store
        if not store.is_remote:
            if len(parts) > 1:
                for_each(lambda part: _run(read_part(bound, part, out), store), parts)
                return
            for part in parts:  # one chunk is read here, without a hop more than it needs
                reading, answer = read_part(bound, part, out), None
                with suppress(StopIteration):
                    while True:
                        answer = _ask(store, reading.send(answer))
            return
        for group in _groups(bound, parts):
            waves = _Waves([read_part(bound, part, out) for part in group])
            while waves.requests:
                waves.answer(store.fetch(waves.requests))

    async def read_async(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        """See `Engine.read_async`."""
        import asyncio

        if not bound.store.is_remote:
            await asyncio.to_thread(self.read, bound, selection, out)
            return
        for group in _groups(bound, plan(selection, bound.axes)):
            waves = _Waves([])
            await asyncio.to_thread(waves.start, [read_part(bound, part, out) for part in group])
            while waves.requests:
                answers = await bound.store.fetch_async(waves.requests)
                await asyncio.to_thread(waves.answer, answers)

    def write(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write`."""
        value = np.broadcast_to(value, selection.shape)
        parts = plan(selection, bound.axes)
        if len(parts) > 1:
            for_each(lambda part: write_part(bound, part, value), parts)
            return
        for part in parts:
            write_part(bound, part, value)

    async def write_async(self, bound: BoundArray, selection: Selection, value: npt.NDArray[Any]) -> None:
        """See `Engine.write_async`."""
        import asyncio

        await asyncio.to_thread(self.write, bound, selection, value)


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


class _Waves:
    """Many chunks' generators, driven together: their requests are collected, answered at once, and decoded in parallel."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._waiting: list[tuple[Reading, Fetch]] = []
        self.start(readings)

    @property
    def requests(self) -> list[Fetch]:
        """What the generators want now; empty when all are done."""
        return [request for _, request in self._waiting]

    def start(self, readings: Sequence[Reading]) -> None:
        """Run every generator to its first request."""
        self._advance([(reading, None) for reading in readings])

    def answer(self, answers: Sequence[Answer]) -> None:
        """Send every generator what it asked for."""
        self._advance([(reading, answer) for (reading, _), answer in zip(self._waiting, answers, strict=True)])

    def _advance(self, steps: list[tuple[Reading, Answer]]) -> None:
        following: list[tuple[Reading, Fetch]] = []

        def step(item: tuple[Reading, Answer]) -> None:
            reading, answer = item
            with suppress(StopIteration):
                following.append((reading, reading.send(answer)))

        for_each(step, steps)
        self._waiting = following


def _groups(bound: BoundArray, parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Parts in runs whose chunks decode to at most `_WAVE_NBYTES` together."""
    group: list[Part] = []
    nbytes = 0
    for part in parts:
        size = bound.chain(bound.chunk_shape(part.coords)).spec.nbytes or 1 << 20
        if group and nbytes + size > _WAVE_NBYTES:
            yield group
            group, nbytes = [], 0
        group.append(part)
        nbytes += size
    if group:
        yield group
