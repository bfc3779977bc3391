"""How one chunk's part of a selection is written.

A part that covers its chunk replaces it without reading. Any other part is merged into what is stored, under the store's
lock for that key (`Store.update`), so that concurrent writers of one chunk or shard lose nothing. In a shard, inner chunks
that are not touched are copied as encoded bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

Values = npt.NDArray[Any]


def write_part(bound: BoundArray, part: Part, value: Values) -> None:
    """Store `part` of `value` (the full-rank value of the whole selection)."""
    shape = bound.chunk_shape(part.coords)
    chain = bound.chain(shape)
    key = bound.key(part.coords)
    keep_empty = bound.options.write_empty_chunks or not bound.store.supports_deletes
    mine = _part_of(value, part)
    combine = merge_shard if chain.partial else merge
    try:
        if not part.covers:
            bound.store.update(key, lambda old: combine(chain, old, part.local, mine, keep_empty))
            return
        data = combine(chain, None, part.local, mine, keep_empty)
        if data is None:
            bound.store.delete(key)
        else:
            bound.store.set(key, data)
    except BaseZarrError as error:
        error.at(store=bound.store.url, path="/" + bound.path, chunk=part.coords, key=key)
        raise


def _part_of(value: Values, part: Part) -> Values:
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
        chunks[part.coords] = combine(layout.inner, before, part.local, _part_of(value, part), keep_empty)

    parts = plan(where, inner_axes)
    if len(parts) > 1:
        for_each(encode, parts)
    else:
        for part in parts:
            encode(part)
    return layout.pack({coords: data for coords, data in chunks.items() if data is not None})
