"""Find the elements of a part: in inner chunks, in the axes of the sharding codec, and in the output."""

from __future__ import annotations

from tessarr.codecs.chain import BoundChain
from tessarr.engine.bound import BoundArray
from tessarr.errors import ChunkNotFoundError
from tessarr.grids.regular import RegularAxis
from tessarr.indexing.chunk_plan import Part, Parts, plan
from tessarr.indexing.selection import Outer, Points, Selection
from tessarr.types import AnyArray


def inner_parts(chain: BoundChain, where: Selection, values: AnyArray) -> tuple[Parts, AnyArray]:
    """Cut `where`, a selection in a shard, into parts of inner chunks. Returns also `values` in the axes of these parts.

    Both are transposed as the transpose codecs of `chain` transpose the shard; there are no other codecs before its sharding
    codec (`BoundChain.partial`). The returned values are a view.
    """
    assert chain.shard is not None
    for codec, spec in chain.before:
        order = codec.permutation(len(spec.shape))
        assert order is not None
        if isinstance(where, Points):
            where = Points(tuple(where.coords[axis] for axis in order))
        else:
            where = Outer(tuple(where.dims[axis] for axis in order))
            values = values.transpose(order)
    shape, inner_shape = chain.shard.spec.shape, chain.shard.codec.chunk_shape
    return plan(where, [RegularAxis(n, m) for n, m in zip(shape, inner_shape, strict=True)]), values


def view_of(out: AnyArray, out_sel: object) -> AnyArray | None:
    """View the part `out_sel` of `out`; ``None`` where index arrays make a view impossible."""
    dims = out_sel if isinstance(out_sel, tuple) else (out_sel,)
    if not all(isinstance(d, slice) for d in dims):
        return None
    return out[(*dims, ...)]  # pyright: ignore[reportCallIssue, reportArgumentType] - it does not narrow by `all`


def fill_missing(bound: BoundArray, part: Part, out: AnyArray) -> None:
    """Write the fill value to the place of `part`, whose chunk is not stored. Raises `ChunkNotFoundError`."""
    if not bound.options.read_missing_chunks:
        hint = "Set array.read_missing_chunks to read it as fill value"
        raise ChunkNotFoundError("a chunk is missing", hint=hint)
    out[part.out_sel] = bound.fill
