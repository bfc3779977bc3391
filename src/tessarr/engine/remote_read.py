"""Selections read together from one store: what they ask for goes out at once, however many arrays they are of.

Shard indexes come first, data second, and single chunks first; each is decoded as it comes while others are on their way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy.typing as npt

from tessarr.engine.base import Reading
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.reference.read_chunk import Answer, Found, PartReading, read_part
from tessarr.engine.write_chunks import WAVE_NBYTES
from tessarr.indexing.plan import plan
from tessarr.indexing.selection import Selection
from tessarr.stores.base import Store
from tessarr.stores.fetch import Asker, Question, Reply
from tessarr.stores.remote.coalesce import coalescing

_SPARE_NBYTES = 4 << 20
"""What all small shards of a wave may bring too much: at 50 ms and 100 MB/s a round trip costs as much as 5 MB."""


def read_waves(store: Store, readings: Sequence[Reading]) -> None:
    """Read all `readings`, whose arrays are in `store`."""
    for group in _groups(readings):
        store.serve(Together(group))


async def read_waves_async(store: Store, readings: Sequence[Reading]) -> None:
    """Call `read_waves` asynchronously."""
    for group in _groups(readings):
        await store.serve_async(Together(group))


class _Run(NamedTuple):
    """Parts of one selection that are read together."""

    reading: Reading
    first: int
    stop: int


def _groups(readings: Iterable[Reading]) -> Iterator[list[_Run]]:
    """All parts, in groups whose chunks decode to at most `WAVE_NBYTES` together."""
    group: list[_Run] = []
    left = WAVE_NBYTES
    for reading in readings:
        first, count = 0, len(reading)
        nbytes = max(1, reading.nbytes) if count else 1
        while first < count:
            room = left // nbytes
            if room < 1 and group:
                yield group
                group, left = [], WAVE_NBYTES
                continue
            stop = min(count, first + max(1, room))
            group.append(_Run(reading, first, stop))
            left -= (stop - first) * nbytes
            first = stop
    if group:
        yield group


class Together:
    """Several runs of parts as one `Asker`."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self._runs = runs
        self._askers: list[Asker] = []

    def asks(self) -> list[Question]:
        """A shard is fetched whole where that saves a round trip for what that costs, shared by all."""
        if not self._askers:
            shares = sum(run.stop - run.first for run in self._runs)
            small = min(coalescing().max_gap, _SPARE_NBYTES // shares)
            self._askers = [run.reading.start(run.first, run.stop, small) for run in self._runs]
        return [
            Question((number, question.id), question.fetch)
            for number, asker in enumerate(self._askers)
            for question in asker.asks()
        ]

    def answer(self, replies: Sequence[Reply]) -> None:
        """Pass each on to whom it is for."""
        shares: dict[int, list[Reply]] = {}
        for reply in replies:
            number, question = cast("tuple[int, Hashable]", reply.id)
            shares.setdefault(number, []).append(Reply(question, reply.parts, reply.version))
        for number, share in shares.items():
            self._askers[number].answer(share)


class PartReadings:
    """The `Reading` of the reference engine."""

    def __init__(self, bound: BoundArray, selection: Selection, out: npt.NDArray[Any]) -> None:
        self._bound = bound
        self._out = out
        self._parts = plan(selection, bound.axes)
        self._rest = iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def nbytes(self) -> int:
        """See `Reading.nbytes`."""
        return self._bound.nbytes(next(iter(self._parts)).coords)

    def start(self, first: int, stop: int, small: int) -> Asker:
        """See `Reading.start`."""
        parts = islice(self._rest, stop - first)
        return _Generators([read_part(self._bound, part, self._out, small=small) for part in parts])


class _Generators:
    """Many chunks' generators as one `Asker`; those that were answered at one time decode in parallel."""

    def __init__(self, readings: Sequence[PartReading]) -> None:
        self._waiting: dict[Hashable, PartReading] = {}
        self._asked = 0
        self._questions: list[Question] = []
        self._advance([(reading, None) for reading in readings])

    def asks(self) -> list[Question]:
        questions, self._questions = self._questions, []
        return questions

    def answer(self, replies: Sequence[Reply]) -> None:
        self._advance(
            [
                (self._waiting.pop(number), None if parts is None else Found(parts, version))
                for number, parts, version in replies
            ]
        )

    def _advance(self, steps: list[tuple[PartReading, Answer]]) -> None:
        following: list[tuple[PartReading, Any]] = []

        def step(item: tuple[PartReading, Answer]) -> None:
            reading, answer = item
            with suppress(StopIteration):
                following.append((reading, reading.send(answer)))

        for_each(step, steps)
        for reading, request in following:
            self._waiting[self._asked] = reading
            self._questions.append(Question(self._asked, request))
            self._asked += 1
