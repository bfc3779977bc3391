"""Read a part of one stored chunk: the specification of reading, for flat chunks, shards, and shards within shards.

A *chunk read* is a generator. It yields the byte ranges that it needs, is sent the bytes, decodes them, and writes into the
output; it does no I/O and uses no event loop. `_read` is the whole algorithm: a chunk needs its bytes; a shard needs its
index, and then the ranges of its inner chunks, which are read in the same way. `read_chunk` adds the parts that concern the
whole value: its key, the fill value where the value is missing, and the check that all bytes are of one version.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from math import prod
from typing import TypeAlias

import numpy as np

from tessarr.codecs.chain import BoundChain
from tessarr.codecs.sharding import ShardLayout
from tessarr.common.segments import flat
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.reference.transpose import transposed_selection
from tessarr.engine.reference.versions import ValueChangedError, ValueVersion
from tessarr.errors import BaseZarrError, ChunkNotFoundError, ShardIndexError
from tessarr.grids.regular import RegularAxis
from tessarr.indexing.plan import Part, plan
from tessarr.indexing.selection import Outer, Selection
from tessarr.stores.fetch import Fetch, version_of
from tessarr.types import AnyArray, Buffer, ByteRange

Target: TypeAlias = AnyArray
ChunkRead: TypeAlias = Generator[Fetch, "list[Buffer] | None", None]
Reader: TypeAlias = Generator[Sequence[ByteRange], Sequence[Buffer], None]
"""A chunk read within one value: yields ranges of the value, is sent a buffer for each."""

WHOLE = ByteRange(0)
_ATTEMPTS = 5
"""Attempts to read a value by ranges while other writers replace it; then one GET of the whole value, which is consistent."""


def read_chunk(bound: BoundArray, part: Part, out: Target, *, whole_below: int = 0) -> ChunkRead:
    """Read `part` of a selection into its place in `out`, which has the full-rank shape of the selection.

    A shard of at most `whole_below` decoded bytes is requested whole, instead of its index first and then ranges.
    """
    chain = bound.chain(bound.chunk_shape(part.coords))
    key = bound.key(part.coords)
    whole = 0 < (chain.spec.nbytes or 0) <= whole_below
    try:
        for attempt in range(_ATTEMPTS + 1):
            version = ValueVersion(bound, key)
            reader = _read(chain, part, out, WHOLE, version, whole=whole or attempt == _ATTEMPTS)
            try:
                ranges = next(reader)
                while True:
                    guards = version.guards()
                    found = yield Fetch(key, None if ranges == [WHOLE] and not guards else (*ranges, *guards))
                    if found is None:
                        version.check_missing()
                        _fill(bound, part, out)
                        return
                    version.check(version_of(found), found[len(ranges) :])
                    ranges = reader.send(found[: len(ranges)])
            except StopIteration:
                return
            except ValueChangedError:
                bound.forget(key)
    except BaseZarrError as error:
        error.at(store=bound.store.url, path="/" + bound.path, chunk=part.coords, key=key)
        raise


def _read(
    chain: BoundChain, part: Part, out: Target, within: ByteRange, version: ValueVersion, *, whole: bool = False
) -> Reader:
    """Read `part` of the chunk in the range `within` of a value into its place in `out`; `chain` decodes the chunk."""
    if not chain.partial:
        (chunk,) = yield [within]
        place = _view(out, part.out_sel) if part.covers else None
        if place is not None and place.shape == chain.spec.shape:
            chain.decode_into(_exactly(chunk, within), place)
        else:
            out[part.out_sel] = chain.decode(_exactly(chunk, within))[part.local.index]
        return
    layout, selection, target = _inside(chain, part, out)
    parts = list(plan(selection, [RegularAxis(*axis) for axis in zip(layout.spec.shape, layout.codec.chunk_shape)]))
    data: Buffer | None = None
    size = _size(within)
    if whole or part.covers or 2 * len(parts) >= prod(layout.grid):
        (data,) = yield [within]
        size = flat(_exactly(data, within)).nbytes
        index = layout.parse_index(_cut(data, layout.index_range))
    elif (known := version.known_index(within, parts)) is not None:
        index = known
    else:
        at = _shift(within, layout.index_range)
        (encoded,) = yield [at]
        index = version.keep_index(within, layout.parse_index(encoded), at, encoded)
    entries = [(inner, layout.entry(index, inner.coords, size)) for inner in parts]
    for inner, entry in entries:
        if entry is None:
            target[inner.out_sel] = layout.spec.fill
    stored = [(inner, entry) for inner, entry in entries if entry is not None]
    reader = _together([_read(layout.inner, inner, target, _shift(within, entry), version) for inner, entry in stored])
    if data is not None:
        _from_bytes(reader, data, within)
    elif stored and size is None and not version.remote:
        yield from _checked(reader, layout.last_byte([entry for _, entry in stored]))
    else:
        yield from reader
    _move_into_place(target, part, out, chain)


def _together(readers: Sequence[Reader]) -> Reader:
    """Read several inner chunks concurrently: the requests of all of them are sent together."""
    needs = [(reader, next(reader)) for reader in readers]

    def advance(answered: tuple[Reader, list[Buffer]]) -> None:
        reader, parts = answered
        with suppress(StopIteration):
            needs.append((reader, reader.send(parts)))

    while needs:
        found = iter((yield [wanted for _, ranges in needs for wanted in ranges]))
        answers = [(reader, [next(found, b"") for _ in ranges]) for reader, ranges in needs]
        needs.clear()
        if len(answers) == 1:
            advance(answers[0])  # saves the hop through the pool
        else:
            for_each(advance, answers)


def _from_bytes(reader: Reader, data: Buffer, within: ByteRange) -> None:
    """Send `reader` the ranges that it requests, cut out of `data`, which is the range `within` of the value."""
    view = flat(data)
    with suppress(StopIteration):
        ranges = next(reader)
        while True:
            bounds = [(wanted.start - within.start, (wanted.stop or 0) - within.start) for wanted in ranges]
            ranges = reader.send([view[start:stop].data for start, stop in bounds])


def _checked(reader: Reader, at: ByteRange) -> Reader:
    """Forward the requests of `reader`, and check with the first response that the value has the byte `at`."""
    found = yield [*next(reader), at]
    _exactly(found[-1], at)
    with suppress(StopIteration):
        ranges = reader.send(found[:-1])
        while True:
            ranges = reader.send((yield ranges))


def _fill(bound: BoundArray, part: Part, out: Target) -> None:
    if not bound.options.read_missing_chunks:
        raise ChunkNotFoundError(
            "a chunk is missing",
            hint="Set array.read_missing_chunks to read it as fill value",
        )
    out[part.out_sel] = bound.fill


def _inside(chain: BoundChain, part: Part, out: Target) -> tuple[ShardLayout, Selection, Target]:
    """Return the layout of a shard, the selection in the axes of the sharding codec, and an array in those axes to read into.

    The array is a view of `out`, or a temporary one where index arrays stand in the way (see `_move_into_place`).
    """
    assert chain.shard is not None
    view = _view(out, part.out_sel)
    target = np.empty(part.local.shape, out.dtype) if view is None else view
    return (chain.shard, *transposed_selection(chain, part.local, target))


def _move_into_place(target: Target, part: Part, out: Target, chain: BoundChain) -> None:
    """Copy a temporary array of `_inside` to its place; do nothing for a view."""
    if _view(out, part.out_sel) is not None:
        return
    if isinstance(part.local, Outer):
        for codec, spec in reversed(chain.before):
            target = codec.decode(target, spec)
    out[part.out_sel] = target


def _view(out: Target, out_sel: object) -> Target | None:
    """View the part `out_sel` of `out`; ``None`` where index arrays make a view impossible."""
    dims = out_sel if isinstance(out_sel, tuple) else (out_sel,)
    return out[(*dims, ...)] if all(isinstance(d, slice) for d in dims) else None


def _size(within: ByteRange) -> int | None:
    """Return the bytes of a nested shard; ``None`` for a shard that is the whole value, whose size is unknown."""
    return None if within.stop is None else within.stop - within.start


def _shift(within: ByteRange, wanted: ByteRange) -> ByteRange:
    """Shift `wanted`, a range within the range `within`, to a range of the value."""
    if within.stop is None:
        return wanted
    start, stop = wanted.bounds(within.stop - within.start)
    return ByteRange(within.start + start, within.start + stop)


def _cut(data: Buffer, wanted: ByteRange) -> Buffer:
    view = flat(data)
    start, stop = wanted.bounds(view.nbytes)
    return view[start:stop].data


def _exactly(piece: Buffer, within: ByteRange) -> Buffer:
    """Return `piece`. Raises `ShardIndexError` unless it is as long as the requested range."""
    size = _size(within)
    if size is not None and memoryview(piece).nbytes != size:
        raise ShardIndexError(
            "a shard ends before an inner chunk that its index lists",
            codec="sharding_indexed",
            expected=f"{size} bytes at offset {within.start}",
            got=f"{memoryview(piece).nbytes} bytes",
        )
    return piece
