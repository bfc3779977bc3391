"""Merge one chunk's part of a selection into its stored value.

In a shard, unchanged inner chunks are copied as encoded bytes. Of structured elements only some fields may be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from tessarr.codecs.chain import BoundChain
from tessarr.codecs.is_fill import is_fill
from tessarr.common.segments import Piece, Stored, StoredBytes
from tessarr.engine.base import Change, ChunkWrite
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.reference.placement import inner_parts
from tessarr.engine.write_chunks import whole
from tessarr.errors import CodecError
from tessarr.indexing.chunk_plan import Part, plan
from tessarr.indexing.selection import Outer, Selection
from tessarr.stores.functions import deletes_safely
from tessarr.types import AnyArray, AnyDType, Buffer, ByteRange, Coords

Values = AnyArray


class ChunkWrites:
    """Plan the change of each chunk by a write of `value`, broadcast to the selection's shape, at `selection`.

    With `fields`, only these fields of the elements are written, and the others keep their values.
    """

    def __init__(self, bound: BoundArray, selection: Selection, value: Values, fields: Sequence[str] = ()) -> None:
        self.forget = bound.forget
        self._bound = bound
        self._fields = fields
        self._value = np.broadcast_to(value, selection.shape)
        self._parts = plan(selection, bound.axes)
        self._keep_empty = bound.options.write_empty_chunks or not bound.access.deletes
        self._merges_cut = not bound.options.replace_cut_chunks
        self._deletes_safely = deletes_safely(bound.store)

    @property
    def nbytes(self) -> int:
        return self._bound.nbytes(next(iter(self._parts)).coords)

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[ChunkWrite]:
        for part in self._parts:
            covers = part.covers and not self._fields
            is_cut = covers and self._merges_cut and part.local.shape != self._bound.chunk_shape(part.coords)
            yield ChunkWrite(
                part.coords, self._bound.key(part.coords), covers and not is_cut, is_cut, self._change(part)
            )

    def stage_covered(self, first: int, stop: int, files: object) -> None:
        """See `tessarr.engine.base.WritePlan`: chunks are encoded one at a time, so that none is staged."""

    def encode_covered(self, first: int, stop: int) -> None:
        """See `tessarr.engine.base.WritePlan`: chunks are encoded one at a time."""

    def _change(self, part: Part) -> Change:
        """Make the function from the old to the new value of `part`'s chunk."""
        chain = self._bound.chain(self._bound.chunk_shape(part.coords))
        mine = _part_of(self._value, part)
        combine = merged_shard if chain.partial else merged
        change = partial(combine, chain, where=part.local, value=mine, fields=self._fields, keep_empty=self._keep_empty)
        if self._deletes_safely:
            return change

        def keeping(old: Stored | None) -> list[Piece] | None:
            # A deletion could remove the value of a concurrent writer, so that a chunk of fill value is stored instead.
            new = change(old)
            if new is None and old is not None:
                return [chain.encode(np.broadcast_to(chain.spec.fill, chain.spec.shape).copy())]
            return new

        return keeping


def _part_of(value: Values, part: Part) -> Values:
    """Return the part's values; always an array (without the Ellipsis a 0-d array would become a scalar)."""
    where = part.out_sel if isinstance(part.out_sel, tuple) else (part.out_sel,)
    mine: Values = value[(*where, ...)]
    return mine


def _new_chunk(shape: tuple[int, ...], dtype: AnyDType) -> AnyArray:
    try:
        return np.ndarray(shape, dtype)
    except ValueError as error:  # more bytes than addresses; fewer are a `MemoryError` of NumPy, which has the size
        got = f"a chunk with shape {shape} and data type {dtype}"
        raise CodecError("no memory holds the chunk", got=got, hint="Create the array with smaller chunks") from error


def merged(
    chain: BoundChain, old: Stored | None, where: Selection, value: Values, fields: Sequence[str], keep_empty: bool
) -> list[Piece] | None:
    """Write `value` at `where` into the chunk `old`, and encode it to pieces; ``None``: the chunk is all fill value.

    `old` is the encoded chunk, or ``None`` for a chunk of fill value. `where` is in the chunk's coordinates. With `fields`,
    only these fields of the elements are written. Works for every chain.
    """
    spec = chain.spec
    if not fields and where.shape == spec.shape and _is_whole(where):
        chunk = value
    else:
        chunk = _new_chunk(spec.shape, spec.dtype)
        chunk[...] = spec.fill if old is None else chain.decode(old.read(ByteRange(0)))
        if not fields:
            chunk[where.index] = value
        for name in fields:
            chunk[name][where.index] = value[name]
    if not keep_empty and is_fill(chunk, spec.fill):
        return None
    return [chain.encode(chunk)]


def _is_whole(where: Selection) -> bool:
    """Whether a selection of the chunk's shape selects every element in order."""
    return isinstance(where, Outer) and all(isinstance(d, slice) and d.step == 1 for d in where.dims)


def merged_shard(
    chain: BoundChain, old: Stored | None, where: Selection, value: Values, fields: Sequence[str], keep_empty: bool
) -> list[Piece] | None:
    """Merge as `merged` does, for a shard whose inner chunks can be decoded separately (`BoundChain.partial`).

    Only the index of the shard and the inner chunks that change are read.
    """
    layout = chain.shard
    assert layout is not None
    parts, value = inner_parts(chain, where, value)
    index = None
    if old is not None:
        index = layout.parse_index(old.read(layout.index_range))
        layout.check(index, old.nbytes)
    chunks: dict[Coords, Buffer | None] = {}
    combine = merged_shard if layout.inner.partial else merged

    def encode(part: Part) -> None:
        entry = None if (part.covers and not fields) or index is None else layout.entry(index, part.coords)
        before = None if entry is None or old is None else StoredBytes(old.read(entry))
        pieces = combine(layout.inner, before, part.local, _part_of(value, part), fields, keep_empty)
        chunks[part.coords] = None if pieces is None else whole(pieces, before)

    if len(parts) > 1:
        for_each(encode, parts)
    else:
        for part in parts:
            encode(part)
    return layout.pack(index, chunks)
