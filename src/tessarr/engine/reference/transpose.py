"""From the axes of a chunk to the axes that its sharding codec sees: through the transposes before it."""

from __future__ import annotations

from tessarr.codecs.array_to_array.transpose import TransposeCodec
from tessarr.codecs.chain import BoundChain
from tessarr.indexing.selection import Outer, Points, Selection
from tessarr.types import AnyArray


def inward(chain: BoundChain, where: Selection, values: AnyArray) -> tuple[Selection, AnyArray]:
    """`where` (in the chunk's axes) and the values that belong to it, both in the axes behind the chain's transposes.

    The values are a view. `chain` is one with nothing but transposes before its sharding codec (`BoundChain.partial`).
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
