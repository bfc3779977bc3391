"""Split a region into boxes: of whole chunks and bounded size, of one shape, or of one chunk.

The only region splitter: copies, conversions, checks and digests all iterate over an array in these boxes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product, zip_longest
from math import lcm, prod
from typing import TypeAlias

from tessarr.grids.base import Axis
from tessarr.types import Coords, Shape

Box: TypeAlias = tuple[slice, ...]
"""A slice with start and stop per axis."""


def boxes_of_chunks(axes: Sequence[Axis], itemsize: int, nbytes: int, read: Shape | None = None) -> Iterator[Box]:
    """Tile the array with `axes` by boxes of whole chunks, each of at most `nbytes`, or one chunk.

    `read`: the shape of the source's chunks; boxes are aligned with these where `nbytes` allows it and all chunks of the
    array have one shape. `itemsize`: bytes per element.
    """
    itemsize, shape = max(1, itemsize), tuple(axis.length for axis in axes)
    if 0 in shape:
        return
    uniform = [axis.uniform for axis in axes if axis.uniform is not None]
    if len(uniform) == len(axes):
        yield from tiles(shape, box_shape(shape, tuple(uniform), read, itemsize, nbytes))
    else:
        yield from product(*_cuts(axes, itemsize, nbytes))


def tiles(shape: Shape, box: Shape) -> Iterator[Box]:
    """Tile an array of `shape` by boxes of the shape `box`, in C order; those at the end of an axis may be smaller.

    >>> list(tiles((3,), (2,)))
    [(slice(0, 2, None),), (slice(2, 3, None),)]
    """
    starts = (range(0, length, step) if length else () for length, step in zip(shape, box, strict=True))
    for corner in product(*starts):
        yield tuple(
            slice(start, min(start + step, length)) for start, step, length in zip(corner, box, shape, strict=True)
        )


def chunk_box(axes: Sequence[Axis], coords: Coords) -> Box:
    """Return the elements of the chunk at `coords`, as far as they lie within the array with `axes`."""
    return tuple(
        slice(axis.start(index), min(axis.start(index) + axis.size(index), axis.length))
        for axis, index in zip(axes, coords, strict=True)
    )


def box_shape(shape: Shape, write: Shape, read: Shape | None, itemsize: int, nbytes: int) -> Shape:
    """Choose the shape of boxes to move values in: whole chunks of `write`, and of `read` as far as `nbytes` allows.

    >>> box_shape((100, 100), (10, 100), (100, 10), 8, nbytes=64 << 20)
    (100, 100)
    >>> box_shape((100, 100), (10, 100), (100, 10), 8, nbytes=16_000)
    (20, 100)
    """
    box = [max(1, size) for size in write]
    if 0 in shape:
        return tuple(box)

    def fits(candidate: Iterable[int]) -> bool:
        return prod(min(n, size) for n, size in zip(shape, candidate, strict=True)) * itemsize <= nbytes

    for axis, size in reversed(list(enumerate(read or ()))):
        aligned = min(lcm(box[axis], max(1, size)), -(-shape[axis] // box[axis]) * box[axis])
        if fits([*box[:axis], aligned, *box[axis + 1 :]]):
            box[axis] = aligned
    for axis in reversed(range(len(box))):
        whole = -(-shape[axis] // box[axis])
        rest = prod(min(n, size) for n, size in zip(shape, box, strict=True)) * itemsize
        box[axis] *= min(whole, max(1, nbytes // max(1, rest)))
    return tuple(box)


def _cuts(axes: Sequence[Axis], itemsize: int, nbytes: int) -> list[list[slice]]:
    """Find, per axis, the intervals of whole chunks to tile by, where chunks differ in size."""
    longest = [
        _longest(_intervals(axis, 0)) if axis.uniform is None else min(axis.uniform, axis.length) for axis in axes
    ]
    size = itemsize * prod(longest)
    cuts: list[list[slice]] = []
    for axis, chunk in zip(reversed(axes), reversed(longest), strict=True):
        rest = size // chunk
        intervals = _intervals(axis, nbytes // rest)
        size = rest * max(chunk, _longest(intervals))
        cuts.append(intervals)
    return cuts[::-1]


def _intervals(axis: Axis, limit: int) -> list[slice]:
    """Tile an axis by slices of whole chunks, each of one chunk or at most `limit` elements."""
    if axis.uniform is not None:
        step = axis.uniform * max(1, limit // axis.uniform)
        return [slice(start, min(start + step, axis.length)) for start in range(0, axis.length, step)]
    ends = [*(axis.start(index) for index in range(1, axis.nchunks)), axis.length]
    kept = [0]
    for end, following in zip_longest(ends, ends[1:]):
        if following is None or following - kept[-1] > limit:
            kept.append(end)
    return [slice(start, stop) for start, stop in pairwise(kept)]


def _longest(spans: list[slice]) -> int:
    longest: int = max(span.stop - span.start for span in spans)
    return longest
