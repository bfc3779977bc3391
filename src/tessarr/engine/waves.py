"""Many chunks read together from a remote store: what they ask for goes out in waves.

A wave is every request that the readings (`tessarr.engine.reading`) have just now: shard indexes first, data second, and
single chunks in the first. The readings may belong to different arrays of one store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy.typing as npt

from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import Items, for_each
from tessarr.engine.reading import Answer, Found, Reading, read_part
from tessarr.indexing.plan import Part, plan
from tessarr.indexing.selection import Selection
from tessarr.stores.base import Fetch, Store, Version
from tessarr.stores.waves import GAP
from tessarr.types import Buffer

_WAVE_NBYTES = 256 << 20
"""Decoded bytes that one wave may be for: bounds the encoded bytes held at once."""

_SPARE_NBYTES = 4 << 20
"""What all small shards of a wave may bring too much: at 50 ms and 100 MB/s a round trip costs as much as 5 MB."""


class Piece(NamedTuple):
    """What to read of one array, and where to put it."""

    bound: BoundArray
    selection: Selection
    out: npt.NDArray[Any]


def read_waves(store: Store, pieces: Sequence[Piece]) -> None:
    """Read all `pieces`, whose arrays are in `store`."""
    for readings in _groups(pieces):
        waves = _Waves(readings)
        while waves.requests:
            waves.answer(*store.fetch_versioned(waves.requests))


async def read_waves_async(store: Store, pieces: Sequence[Piece]) -> None:
    """Call `read_waves` asynchronously."""
    import asyncio

    for readings in _groups(pieces):
        waves = _Waves([])
        await asyncio.to_thread(waves.start, readings)
        while waves.requests:
            answers, versions = await store.fetch_versioned_async(waves.requests)
            await asyncio.to_thread(waves.answer, answers, versions)


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

    def answer(self, answers: Sequence[list[Buffer] | None], versions: Sequence[Version | None]) -> None:
        """Send every generator what it asked for."""
        self._advance(
            [
                (reading, None if parts is None else Found(parts, version))
                for (reading, _), parts, version in zip(self._waiting, answers, versions, strict=True)
            ]
        )

    def _advance(self, steps: list[tuple[Reading, Answer]]) -> None:
        following: list[tuple[Reading, Fetch]] = []

        def step(item: tuple[Reading, Answer]) -> None:
            reading, answer = item
            with suppress(StopIteration):
                following.append((reading, reading.send(answer)))

        for_each(step, steps)
        self._waiting = following


def _groups(pieces: Iterable[Piece]) -> Iterator[list[Reading]]:
    """The readings of all pieces, in runs whose chunks decode to at most `_WAVE_NBYTES` together."""
    group: list[tuple[BoundArray, Part, npt.NDArray[Any]]] = []
    nbytes = 0
    for bound, selection, out in pieces:
        for part in plan(selection, bound.axes):
            size = _chunk_nbytes(bound, part)
            if group and nbytes + size > _WAVE_NBYTES:
                yield _readings(group)
                group, nbytes = [], 0
            group.append((bound, part, out))
            nbytes += size
    if group:
        yield _readings(group)


def _readings(group: Sequence[tuple[BoundArray, Part, npt.NDArray[Any]]]) -> list[Reading]:
    """A shard is fetched whole where that saves a wave for what a wave costs, shared by all that are read together."""
    small = min(GAP, _SPARE_NBYTES // len(group))
    return [read_part(bound, part, out, small=small) for bound, part, out in group]


def at_once(bound: BoundArray, parts: Items[Part]) -> int:
    """How many of these chunks may be on their way to the store together."""
    first = next(iter(parts), None)
    nbytes = 1 if first is None else _chunk_nbytes(bound, first)
    return max(1, min(len(parts), bound.store.requests_at_once, _WAVE_NBYTES // nbytes))


def _chunk_nbytes(bound: BoundArray, part: Part) -> int:
    """Decoded bytes of a chunk; a guess for variable-length elements."""
    return bound.chain(bound.chunk_shape(part.coords)).spec.nbytes or 1 << 20
