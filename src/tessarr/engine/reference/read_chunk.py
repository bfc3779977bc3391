"""Read a part of one stored chunk: the specification of reading, for flat chunks, shards, and shards within shards.

A *chunk read* is a generator. It yields the byte ranges that it needs, is sent the bytes, decodes them, and writes into the
output; it does no I/O and uses no event loop. A chunk needs its bytes. A shard needs its index, and then the ranges of its
inner chunks, which are read in the same way. All bytes are of one version of the value, else the read restarts.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tessarr.codecs.chain import BoundChain
from tessarr.engine.bound import BoundArray
from tessarr.engine.reference.placement import fill_missing, inner_parts, view_of
from tessarr.engine.reference.readers import ChunkRead, Reader, read_from, together
from tessarr.engine.reference.versions import ValueChangedError, VersionCheck
from tessarr.engine.reference.within import WHOLE, check_length, cut, shift, size_of
from tessarr.errors import BaseZarrError
from tessarr.indexing.chunk_plan import Part
from tessarr.types import AnyArray, Buffer, ByteRange

ATTEMPTS = 5
"""Attempts to read a value by ranges while other writers replace it; then one GET of the whole value, which is consistent."""


def read_chunk(bound: BoundArray, part: Part, out: AnyArray, whole_below: int = 0) -> ChunkRead:
    """Read `part` of a selection into its place in `out`, which has the full-rank shape of the selection.

    A shard of at most `whole_below` decoded bytes is requested whole, instead of its index first and then ranges.
    """
    chain, key = bound.chain(bound.chunk_shape(part.coords)), bound.key(part.coords)
    whole = 0 < (chain.spec.nbytes or 0) <= whole_below
    try:
        for attempt in range(ATTEMPTS + 1):
            version = VersionCheck(bound, key)
            reader = _read(chain, part, out, WHOLE, version, whole=whole or attempt == ATTEMPTS)
            try:
                ranges = next(reader)
                while (found := (yield version.request(ranges))) is not None:
                    ranges = reader.send(version.checked(found, ranges))
                version.check_missing()
                fill_missing(bound, part, out)
                return
            except StopIteration:
                return
            except ValueChangedError:
                bound.forget(key)
    except BaseZarrError as error:
        error.at(store=bound.store.url, path="/" + bound.path, chunk=part.coords, key=key)
        raise


def _read(
    chain: BoundChain, part: Part, out: AnyArray, within: ByteRange, version: VersionCheck, *, whole: bool = False
) -> Reader:
    """Read `part` of the chunk in the range `within` of a value into its place in `out`; `chain` decodes the chunk."""
    if chain.shard is None or not chain.partial:
        (encoded,) = yield [within]
        if within != WHOLE:
            check_length(encoded, within)
        place = view_of(out, part.out_sel) if part.covers else None
        if place is not None and place.shape == chain.spec.shape:
            chain.decode_into(encoded, place)
        else:
            out[part.out_sel] = chain.decode(encoded)[part.local.index]
        return
    place = view_of(out, part.out_sel)
    elements = np.ndarray(part.local.shape, out.dtype) if place is None else place
    parts, target = inner_parts(chain, part.local, elements)
    shard, size = chain.shard, size_of(within)
    data: Buffer | None = None
    if whole or part.covers or 2 * len(parts) >= prod(shard.grid):
        (data,) = yield [within]
        check_length(data, within)
        size = memoryview(data).nbytes
        index = shard.parse_index(cut(data, shard.index_range))
    else:
        index = yield from version.read_index(shard, within, parts)
    stored, readers = [], []
    for inner in parts:
        entry = shard.entry(index, inner.coords, size)
        if entry is None:
            target[inner.out_sel] = shard.spec.fill
        else:
            stored.append(entry)
            readers.append(_read(shard.inner, inner, target, shift(within, entry), version))
    if data is not None:
        read_from(data, within, together(readers))
    else:
        yield from together(readers, version.last_byte(shard, within, stored))
    if place is None:
        out[part.out_sel] = elements
