"""How one chunk's part of a selection is written.

A part that covers its chunk replaces it without reading. Any other part is merged into what is stored, under the store's
lock for that key (`Store.update`), so that concurrent writers of one chunk or shard lose nothing. In a shard, inner chunks
that are not touched are copied as encoded bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from threading import Semaphore
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tessarr.codecs.chain import BoundChain
from tessarr.codecs.emptiness import is_fill
from tessarr.engine.bound import BoundArray
from tessarr.engine.inward import inward
from tessarr.engine.pool import for_each
from tessarr.errors import BaseZarrError
from tessarr.grids.regular import RegularAxis
from tessarr.indexing.plan import Part, plan
from tessarr.indexing.selection import Outer, Selection
from tessarr.types import Buffer, Coords

if TYPE_CHECKING:
    import asyncio

Values = npt.NDArray[Any]


Change = Callable[[Buffer | None], Buffer | None]


def write_part(bound: BoundArray, part: Part, value: Values, gate: Semaphore | None = None) -> None:
    """Store `part` of `value` (the full-rank value of the whole selection). `gate` bounds how many encode at a time."""
    key = bound.key(part.coords)
    change = _change(bound, part, value, gate)
    try:
        if not part.covers:
            bound.store.update(key, change)
        elif (data := change(None)) is None:
            bound.store.delete(key)
        else:
            bound.store.set(key, data)
    except BaseZarrError as error:
        error.at(store=bound.store.url, path="/" + bound.path, chunk=part.coords, key=key)
        raise
    finally:
        if bound.indexes is not None:
            bound.indexes.forget(key)


async def write_part_async(bound: BoundArray, part: Part, value: Values, gate: asyncio.Semaphore) -> None:
    """Call `write_part` asynchronously."""
    import asyncio

    key = bound.key(part.coords)
    change = _change(bound, part, value, None)
    try:
        if not part.covers:
            await bound.store.update_async(key, change)
            return
        async with gate:
            data = await asyncio.to_thread(change, None)
        if data is None:
            await bound.store.delete_async(key)
        else:
            await bound.store.set_async(key, data)
    except BaseZarrError as error:
        error.at(store=bound.store.url, path="/" + bound.path, chunk=part.coords, key=key)
        raise
    finally:
        if bound.indexes is not None:
            bound.indexes.forget(key)


def _change(bound: BoundArray, part: Part, value: Values, gate: Semaphore | None) -> Change:
    """What makes the new value of `part`'s chunk out of the old one."""
    chain = bound.chain(bound.chunk_shape(part.coords))
    keep_empty = bound.options.write_empty_chunks or not bound.store.supports_deletes
    mine = part_of(value, part)
    combine = merge_shard if chain.partial else merge
    if gate is None and bound.store.supports_conditional_deletes:
        return lambda old: combine(chain, old, part.local, mine, keep_empty)

    def change(old: Buffer | None) -> Buffer | None:
        with gate or nullcontext():
            new = combine(chain, old, part.local, mine, keep_empty)
            # A deletion could hit what another writer put there meanwhile: an empty chunk is then stored as such.
            if new is None and old is not None and not bound.store.supports_conditional_deletes:
                return chain.encode(np.full(chain.spec.shape, chain.spec.fill, chain.spec.dtype))
            return new

    return change


def part_of(value: Values, part: Part) -> Values:
    """The part's values; always an array (a 0-d one would turn into a scalar without the Ellipsis)."""
    where = part.out_sel if isinstance(part.out_sel, tuple) else (part.out_sel,)
    mine: Values = value[(*where, ...)]
    return mine


def merge(chain: BoundChain, old: Buffer | None, where: Selection, value: Values, keep_empty: bool) -> Buffer | None:
    """The encoded chunk that holds `old` with `value` laid over it at `where`; ``None`` when only fill is left.

    `old` is the encoded chunk, or ``None`` for fill value everywhere. `where` is in the chunk's coordinates.
    Works for every chain; `merge_shard` does the same for a shard without decoding what is not touched.
    """
    spec = chain.spec
    if where.shape == spec.shape and _is_whole(where):
        chunk = value
    else:
        chunk = np.empty(spec.shape, spec.dtype)
        chunk[...] = spec.fill if old is None else chain.decode(old)
        chunk[where.index] = value
    if not keep_empty and is_fill(chunk, spec.fill):
        return None
    return chain.encode(chunk)


def _is_whole(where: Selection) -> bool:
    """Whether a selection of the chunk's own shape takes every element in order."""
    return isinstance(where, Outer) and all(isinstance(d, slice) and d.step == 1 for d in where.dims)


def merge_shard(
    chain: BoundChain, old: Buffer | None, where: Selection, value: Values, keep_empty: bool
) -> Buffer | None:
    """`merge` for a chain whose parts can be decoded alone (`BoundChain.partial`)."""
    layout = chain.shard
    assert layout is not None
    where, value = inward(chain, where, value)
    inner_axes = [RegularAxis(n, m) for n, m in zip(layout.spec.shape, layout.codec.chunk_shape, strict=True)]
    stored: Mapping[Coords, Buffer] = {} if old is None else layout.split(old)
    chunks: dict[Coords, Buffer | None] = dict(stored)

    combine = merge_shard if layout.inner.partial else merge

    def encode(part: Part) -> None:
        before = None if part.covers else stored.get(part.coords)
        chunks[part.coords] = combine(layout.inner, before, part.local, part_of(value, part), keep_empty)

    parts = plan(where, inner_axes)
    if len(parts) > 1:
        for_each(encode, parts)
    else:
        for part in parts:
            encode(part)
    return layout.pack({coords: data for coords, data in chunks.items() if data is not None})
