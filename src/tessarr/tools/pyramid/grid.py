"""The chunks of a level: its array's, or where those differ in length, its array's at the level's scale.

>>> lengths([3, 5, 4, 4], 2)
[4, 4]

Along an axis that keeps its length chunks stay as they are. Along one that shrinks they end where chunks of the array
end, so that each is made of whole ones; neighbours are joined as long as they stay no longer than the array's longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise, product
from math import prod

from tessarr.codecs.sharding import ShardingCodec
from tessarr.core.array import Array
from tessarr.grids.base import Axis, ChunkGrid
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.types import Shape


def level_grid(base: Array, total: Shape) -> ChunkGrid:
    """The grid of a level that is `total` times smaller per axis."""
    chunks = base.metadata.chunk_grid.chunk_shape
    if chunks is not None:
        return RegularGrid(chunks)
    axes = base.metadata.chunk_grid.axes(base.shape)
    # Inner chunks divide every shard of the array, and so its longest, but not always a part of one.
    whole = any(isinstance(codec, ShardingCodec) for codec in base.metadata.codecs)
    return RectilinearGrid([_axis(axis, factor, whole) for axis, factor in zip(axes, total, strict=True)])


def _axis(axis: Axis, factor: int, whole: bool) -> int | list[list[int]]:
    if axis.uniform is not None:
        return axis.uniform
    sizes = [axis.size(index) for index in range(axis.nchunks)] or [1]
    if factor > 1 and whole:
        return max(sizes)
    found = lengths(sizes, factor) if factor > 1 else sizes
    return [[size, len(list(run))] for size, run in groupby(found)]


def lengths(sizes: Sequence[int], factor: int) -> list[int]:
    """The chunk lengths of an axis that is `factor` times shorter than one with chunks of these `sizes`."""
    longest = max(sizes)
    ends, at = [0], 0
    for size in sizes:
        at += size
        end = -(-at // factor)
        if len(ends) > 1 and end - ends[-2] <= longest:
            ends[-1] = end  # joined with the chunk before
        elif end > ends[-1]:
            ends.append(end)
    return [stop - start for start, stop in pairwise(ends)]


def varied_boxes(array: Array, nbytes: int) -> Iterator[tuple[slice, ...]]:
    """Boxes of whole stored chunks that tile an array whose chunks differ, each of at most `nbytes`, or one chunk."""
    axes = array.metadata.chunk_grid.axes(array.shape)
    bounds = [[axis.start(index) for index in range(axis.nchunks)] + [axis.length] for axis in axes]
    longest = [max((b - a for a, b in pairwise(at)), default=1) for at in bounds]
    budget = nbytes // max(1, array.dtype.itemsize)
    cuts: list[list[int]] = []
    for axis in reversed(range(array.ndim)):
        rest = prod(longest[:axis]) * prod(max(b - a for a, b in pairwise(c)) for c in cuts)
        cuts.append(_joined(bounds[axis], budget // max(1, rest)))
    cuts.reverse()
    for part in product(*(list(pairwise(at)) for at in cuts)):
        yield tuple(slice(start, stop) for start, stop in part)


def _joined(bounds: Sequence[int], limit: int) -> list[int]:
    """Fewer bounds: neighbours are joined while they are no longer than `limit` together."""
    kept = [bounds[0]]
    for at, following in zip(bounds[1:], [*bounds[2:], None], strict=False):
        if following is None or following - kept[-1] > limit:
            kept.append(at)
    return kept
