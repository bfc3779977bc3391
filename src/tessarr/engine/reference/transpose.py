"""Transpose a selection from the axes of a chunk to the axes of its sharding codec."""

from __future__ import annotations

from tessarr.codecs.array_to_array.transpose import TransposeCodec
from tessarr.codecs.chain import BoundChain
from tessarr.indexing.selection import Outer, Points, Selection
from tessarr.types import AnyArray


def transposed_selection(chain: BoundChain, where: Selection, values: AnyArray) -> tuple[Selection, AnyArray]:
    """Transpose `where` (in the chunk's axes) and its `values` as the transpose codecs of `chain` transpose the chunk.

    The returned values are a view. `chain` has only transpose codecs before its sharding codec (`BoundChain.partial`).
    """
    for codec, spec in chain.before:
        assert isinstance(codec, TransposeCodec)
        order = codec.permutation(len(spec.shape))
        if isinstance(where, Points):
            where = Points(tuple(where.coords[axis] for axis in order))
        else:
            where = Outer(tuple(where.dims[axis] for axis in order))
            values = values.transpose(order)
    return where, values
