"""Choose the chunks of a level: those of its array, scaled to the level where they differ in length.

>>> lengths([3, 5, 4, 4], 2)
[4, 4]

Along an axis that keeps its length, chunks stay the same. Along one that shrinks, they end where chunks of the array end,
so that each is made from whole ones; neighbours are merged while they are no longer than the array's longest chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from tessarr.codecs.sharding import ShardingCodec
from tessarr.core.array import Array
from tessarr.grids.base import Axis, ChunkGrid
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.types import Shape


def level_grid(base: Array, total: Shape) -> ChunkGrid:
    """Make the grid of a level that is `total` times smaller per axis."""
    chunks = base._metadata.chunk_grid.chunk_shape
    if chunks is not None:
        return RegularGrid(chunks)
    axes = base._metadata.chunk_grid.axes(base.shape)
    # Inner chunks divide every shard of the array, and so its longest, but not always a part of one.
    whole = any(isinstance(codec, ShardingCodec) for codec in base._metadata.codecs)
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
    """Compute the chunk lengths of an axis that is `factor` times shorter than one with chunks of these `sizes`."""
    longest = max(sizes)
    ends, at = [0], 0
    for size in sizes:
        at += size
        end = -(-at // factor)
        if len(ends) > 1 and end - ends[-2] <= longest:
            ends[-1] = end  # merged with the chunk before
        elif end > ends[-1]:
            ends.append(end)
    return [stop - start for start, stop in pairwise(ends)]
