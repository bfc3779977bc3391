"""Cut the levels of a pyramid into tasks, and say which tasks read what a task wrote. Pure.

The boxes of all levels are expressed in elements of the array, so that they are stages over one shape. In elements of their
level they have equal lengths: so each is made from whole boxes of the level before, except where a method looks beyond a block
of elements (its *halo*) or chunks differ in length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import gcd, prod
from typing import NamedTuple

from tessarr.grids.base import Axis
from tessarr.indexing.boxes import Box, box_shape, tiles
from tessarr.plan.strategies.stages import Stages
from tessarr.plan.tiling import Tiling
from tessarr.tools.pyramid.levels import Level
from tessarr.tools.pyramid.reduce import Method, halo
from tessarr.types import Shape

REDUCING: dict[Method, tuple[int, int]] = {
    "nearest": (0, 1), "max": (4, 3), "mean": (20, 4), "mode": (20, 3), "gaussian": (40, 2),
}  # fmt: skip
"""What reducing holds at most besides its elements: bytes per element, and how many times its size."""


def stages_of(tilings: Sequence[Tiling], levels: Sequence[Level], method: Method, *, one_block: bool = False) -> Stages:
    """Number the boxes of the new levels, `tilings`, as stages. `levels`: the array itself first. `one_block`: level by level.

    >>> levels = [Level("0", (8,), (1,), (1,)), Level("1", (4,), (2,), (2,)), Level("2", (2,), (2,), (4,))]
    >>> stages = stages_of([Tiling((4,), (1,)), Tiling((2,), (1,))], levels, "mean")
    >>> stages.blocks.count, list(stages.ranges(1))
    (2, [range(3, 5), range(5, 6)])
    """
    shape = levels[0].shape
    scaled = [_scaled(tiling, shape, level.total) for tiling, level in zip(tilings, levels[1:], strict=True)]
    looks_beyond = any(halo(method, factor) != (0, 0) for level in levels[2:] for factor in level.factors)
    if len(scaled) > 1 and (one_block or looks_beyond):
        return Stages(Tiling(shape, tuple(max(1, n) for n in shape)), tuple(scaled))
    return Stages.of(*scaled)


def _scaled(tiling: Tiling, shape: Shape, total: Shape) -> Tiling:
    """Express the boxes of a level in elements of the array of `shape`, `total` of which are one element of the level."""
    cuts = (
        cut * by if isinstance(cut, int) else tuple(min(end * by, n) for end in cut)
        for cut, n, by in zip(tiling.cuts, shape, total, strict=True)
    )
    return Tiling(shape, tuple(cuts))


def in_level(box: Box, total: Shape) -> Box:
    """Express a box of the array in elements of a level."""
    return tuple(slice(part.start // by, -(-part.stop // by)) for part, by in zip(box, total, strict=True))


def needs(stages: Stages, levels: Sequence[Level], method: Method, task: int) -> Iterator[int]:
    """Yield the tasks that write what a task reads; none for one that reads the array."""
    block, stage, box = stages.locate(task)
    if stage == 0:
        return
    level, before = levels[stage + 1], levels[stage]
    tiling = stages.tilings[stage - 1]
    spans = []
    for axis, part in enumerate(in_level(box, level.total)):
        low, high = _read_interval(part, level.factors[axis], method, before.shape[axis])
        first, last = (tiling.find(axis, at * before.total[axis]) for at in (low, high - 1))
        spans.append(range(first, last + 1))
    for index in product(*spans):
        yield stages.number(block, stage - 1, index)


def _read_interval(part: slice, factor: int, method: Method, length: int) -> tuple[int, int]:
    """Return the elements of the level before that an interval of a level is made from."""
    low, high = halo(method, factor)
    return max(0, part.start * factor - low), min(length, part.stop * factor + high)


def bytes_per_element(itemsize: int, factors: Shape, method: Method) -> int:
    """Return what a task holds per element of a level while it reduces: elements of the level before, and results between."""
    constant, times = REDUCING[method]
    return prod(factors) * (itemsize + constant + times * itemsize)


class Pieces(NamedTuple):
    """How a task takes a box, in elements of its level: the parts that it reads at once, and those that it reduces at once."""

    read: Shape
    reduced: Shape


def piece_shapes(tiling: Tiling, read: Shape, factors: Shape, itemsize: int, method: Method, nbytes: int) -> Pieces:
    """Choose the parts of a box that a task reads and reduces at once, for which it may hold `nbytes`.

    They are made from whole chunks `read` of the level before as far as `nbytes` allows. Reducing holds several times what it
    reads: where that is too much, whole chunks are read and held, and reduced part by part.
    """
    longest = tiling.longest
    whole = tuple(size // gcd(size, factor) for size, factor in zip(read, factors, strict=True))

    def shape(within: Shape, per_element: int, most: int) -> Shape:
        return tuple(map(min, within, box_shape(within, (1,) * len(within), whole, per_element, most)))

    reducing = bytes_per_element(itemsize, factors, method)
    at_once = shape(longest, reducing, nbytes)
    if all(length % size == 0 or length == n for length, size, n in zip(at_once, whole, longest, strict=True)):
        return Pieces(at_once, at_once)
    held = shape(longest, prod(factors) * itemsize, nbytes // 2)
    return Pieces(held, shape(held, reducing, nbytes // 2))


def pieces(box: Box, shape: Shape) -> Iterator[Box]:
    """Tile a box by pieces of `shape`."""
    lengths = tuple(part.stop - part.start for part in box)
    for piece in tiles(lengths, shape):
        yield tuple(slice(low.start + part.start, low.start + part.stop) for low, part in zip(box, piece, strict=True))


def read_intervals(
    tiling: Tiling, piece: Shape, lengths: Shape, level: Level, method: Method
) -> list[list[tuple[int, int]]]:
    """Return what all tasks of a level read along each axis of the level before, whose `lengths` these are, piece by piece."""
    return [
        [
            _read_interval(slice(first, min(first + length, stop)), factor, method, n)
            for start, stop in pairwise(tiling.ends(axis))
            for first in range(start, stop, length)
        ]
        for axis, (length, n, factor) in enumerate(zip(piece, lengths, level.factors, strict=True))
    ]


def count_reads(intervals: Sequence[Sequence[tuple[int, int]]], source: Sequence[Axis]) -> int:
    """Count the chunks of the axes `source` that are read in intervals of each: every chunk that one touches."""
    return prod(
        sum(axis.find(high - 1) - axis.find(low) + 1 for low, high in along)
        for axis, along in zip(source, intervals, strict=True)
    )
