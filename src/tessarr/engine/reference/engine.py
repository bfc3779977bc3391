"""The reference engine: the executable specification in Python, for any codec, data type and store.

It plans (`tessarr.indexing.plan`) and makes a chunk read (`tessarr.engine.reference.read_chunk`) or a change
(`tessarr.engine.reference.merge`) for each chunk; `tessarr.engine.run` and `tessarr.engine.write_chunks` carry them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from tessarr.engine.base import ReadPlan, Request, Response, WritePlan
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.reference.merge import ChunkWrites
from tessarr.engine.reference.read_chunk import ChunkRead, read_chunk
from tessarr.engine.run import run, run_async
from tessarr.engine.write_chunks import store_chunks, store_chunks_async
from tessarr.indexing.plan import plan
from tessarr.indexing.selection import Selection
from tessarr.stores.fetch import Fetch, Fetched
from tessarr.stores.protocols import Remote
from tessarr.types import AnyArray, Buffer


class ReferenceEngine:
    """See `tessarr.engine.base.Engine`. Serves everything."""

    name = "reference"

    def supports(self, bound: BoundArray) -> str | None:
        return None

    def plan_read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> ReadPlan:
        return _ReadPlan(bound, selection, out)

    def plan_write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> WritePlan:
        return ChunkWrites(bound, selection, value)

    def read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        run([_ReadPlan(bound, selection, out)], bound.store)

    async def read_async(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        await run_async([_ReadPlan(bound, selection, out)], bound.store)

    def element(self, bound: BoundArray, index: tuple[object, ...]) -> Any:
        return None

    def write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        store_chunks(bound, ChunkWrites(bound, selection, value))

    async def write_async(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        await store_chunks_async(bound, ChunkWrites(bound, selection, value))


class _ReadPlan:
    """See `tessarr.engine.base.ReadPlan`."""

    def __init__(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        self._bound = bound
        self._out = out
        self._parts = plan(selection, bound.axes)
        self._rest = iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def nbytes(self) -> int:
        return self._bound.nbytes(next(iter(self._parts)).coords)

    def start(self, first: int, stop: int, whole_below: int) -> _ChunkReads:
        if not isinstance(self._bound.store, Remote):
            whole_below = 0  # where no round trip is saved, the specification reads what is wanted and no more
        parts = islice(self._rest, stop - first)
        return _ChunkReads([read_chunk(self._bound, part, self._out, whole_below=whole_below) for part in parts])


class _ChunkReads:
    """See `tessarr.engine.base.ChunkReads`. Those that are answered together decode in parallel."""

    def __init__(self, reads: Sequence[ChunkRead]) -> None:
        self._waiting: dict[int, ChunkRead] = {}
        self._requested = 0
        self._new: list[Request] = []
        for read in reads:
            self._need(read, next(read))

    def _need(self, read: ChunkRead, wanted: Fetch) -> None:
        self._waiting[self._requested] = read
        self._new.append(Request(self._requested, wanted))
        self._requested += 1

    def requests(self) -> list[Request]:
        new, self._new = self._new, []
        return new

    def receive(self, responses: Sequence[Response]) -> None:
        more: list[tuple[ChunkRead, Fetch]] = []

        def advance(answered: tuple[ChunkRead, list[Buffer] | None]) -> None:
            read, found = answered
            with suppress(StopIteration):
                more.append((read, read.send(found)))

        answered = [
            (self._waiting.pop(number), None if parts is None else Fetched(parts, version))
            for number, parts, version in responses
        ]
        if len(answered) == 1:
            advance(answered[0])
        else:
            for_each(advance, answered)
        for read, wanted in more:
            self._need(read, wanted)
