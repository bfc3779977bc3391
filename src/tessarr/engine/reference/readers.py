"""Combine reads of inner chunks: requests that are sent together, and reads of bytes that are in memory."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TypeAlias

from tessarr.common.segments import flat
from tessarr.engine.pool import for_each
from tessarr.engine.reference.within import check_length
from tessarr.stores.fetch import Fetch
from tessarr.types import Buffer, ByteRange

ChunkRead: TypeAlias = Generator[Fetch, "list[Buffer] | None", None]
"""A chunk read: yields requests, and is sent the response to each; ``None``: no such key."""
Reader: TypeAlias = Generator[Sequence[ByteRange], Sequence[Buffer], None]
"""A chunk read within one value: yields ranges of the value, and is sent a buffer for each."""


def together(readers: Sequence[Reader], last: ByteRange | None = None) -> Reader:
    """Read several inner chunks concurrently: the requests of all of them are sent together.

    With `last`, the first requests also check that the value has that byte.
    """
    needs = [(reader, next(reader)) for reader in readers]

    def advance(answered: tuple[Reader, list[Buffer]]) -> None:
        reader, parts = answered
        with suppress(StopIteration):
            needs.append((reader, reader.send(parts)))

    while needs:
        ranges = [wanted for _, ranges in needs for wanted in ranges]
        if last is None:
            found = iter((yield ranges))
        else:
            *parts, byte = yield [*ranges, last]
            check_length(byte, last)
            found, last = iter(parts), None
        answers = [(reader, [next(found, b"") for _ in ranges]) for reader, ranges in needs]
        needs.clear()
        if len(answers) == 1:
            advance(answers[0])  # saves the hop through the pool
        else:
            for_each(advance, answers)


def read_from(data: Buffer, within: ByteRange, reader: Reader) -> None:
    """Send `reader` the ranges that it requests, cut out of `data`, which is the range `within` of the value."""
    view = flat(data)
    with suppress(StopIteration):
        ranges = next(reader)
        while True:
            bounds = [(wanted.start - within.start, (wanted.stop or 0) - within.start) for wanted in ranges]
            ranges = reader.send([view[start:stop].data for start, stop in bounds])
