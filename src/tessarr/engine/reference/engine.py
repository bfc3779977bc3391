"""The reference engine: the executable specification in Python, for any codec, data type and store.

It plans (`tessarr.indexing.chunk_plan`) and makes a chunk read (`tessarr.engine.reference.read_chunk`) or a change
(`tessarr.engine.reference.merge`) for each chunk; `tessarr.engine.run` and `tessarr.engine.write_chunks` carry them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from tessarr.engine.base import ReadPlan, Request, Response, WritePlan
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import INLINE_NBYTES, for_each
from tessarr.engine.reference.merge import ChunkWrites
from tessarr.engine.reference.read_chunk import read_chunk
from tessarr.engine.reference.readers import ChunkRead
from tessarr.engine.run import run, run_async
from tessarr.engine.write_chunks import store_chunks, store_chunks_async
from tessarr.indexing.chunk_plan import plan
from tessarr.indexing.selection import Selection
from tessarr.stores.fetch import Fetched
from tessarr.types import AnyArray


class ReferenceEngine:
    """See `tessarr.engine.base.Engine`. Serves everything."""

    name = "reference"

    def supports(self, bound: BoundArray) -> str | None:
        return None

    def plan_read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> ReadPlan:
        return _read_plan(bound, selection, out)

    def plan_write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> WritePlan:
        return ChunkWrites(bound, selection, value)

    def read(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        run([_read_plan(bound, selection, out)], bound.access)

    async def read_async(self, bound: BoundArray, selection: Selection, out: AnyArray) -> None:
        await run_async([_read_plan(bound, selection, out)], bound.access)

    def element(self, bound: BoundArray, index: tuple[object, ...]) -> Any:
        return None

    def write(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        store_chunks(bound, ChunkWrites(bound, selection, value))

    async def write_async(self, bound: BoundArray, selection: Selection, value: AnyArray) -> None:
        await store_chunks_async(bound, ChunkWrites(bound, selection, value))


def _read_plan(bound: BoundArray, selection: Selection, out: AnyArray) -> ReadPlan:
    parts = plan(selection, bound.axes)
    rest = iter(parts)
    nbytes = bound.nbytes(next(iter(parts)).coords) if len(parts) else 0

    def start(first: int, stop: int, whole_below: int) -> _ChunkReads:
        if not bound.access.remote:
            whole_below = 0  # where no round trip is saved, the specification reads only the selected inner chunks
        reads = [read_chunk(bound, part, out, whole_below) for part in islice(rest, stop - first)]
        return _ChunkReads(reads, nbytes)

    return ReadPlan(len(parts), nbytes, bound.has_shards, start)


class _ChunkReads:
    """See `tessarr.engine.base.ChunkReads`. Responses that arrive together are decoded in parallel, unless they are small."""

    def __init__(self, reads: Sequence[ChunkRead], nbytes: int) -> None:
        self._nbytes = nbytes
        self._waiting: dict[int, ChunkRead] = {}
        self._requested = 0
        self._needs = [(read, next(read)) for read in reads]

    def receive(self, responses: Sequence[Response]) -> list[Request]:
        answered = [
            (self._waiting.pop(number), None if parts is None else Fetched(parts, version))
            for number, parts, version in responses
        ]
        if len(answered) * self._nbytes > INLINE_NBYTES and len(answered) > 1:
            for_each(self._advance, answered)
        else:
            for read, found in answered:
                with suppress(StopIteration):
                    self._needs.append((read, read.send(found)))
        needs, self._needs = self._needs, []
        requests = [Request(self._requested + number, wanted) for number, (_, wanted) in enumerate(needs)]
        self._waiting.update((self._requested + number, read) for number, (read, _) in enumerate(needs))
        self._requested += len(needs)
        return requests

    def _advance(self, answered: tuple[ChunkRead, Fetched | None]) -> None:
        read, found = answered
        with suppress(StopIteration):
            self._needs.append((read, read.send(found)))
