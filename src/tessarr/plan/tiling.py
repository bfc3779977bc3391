"""Tile an array by boxes of whole chunks that are computed from their number. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from operator import sub
from typing import Self, TypeAlias

from tessarr.grids.base import Axis
from tessarr.indexing.boxes import Box
from tessarr.types import JSON, Coords, Shape

Cut: TypeAlias = int | tuple[int, ...]
"""How one axis is tiled: the length of each interval, or the positions where intervals end."""

JSONCuts: TypeAlias = Sequence[int | Sequence[int]]
"""A cut per axis in JSON."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tile an array of `shape` by boxes, which are numbered in C order.

    >>> tiling = Tiling((5, 4), (2, 4))
    >>> tiling.count, tiling.box(2)
    (3, (slice(4, 5, None), slice(0, 4, None)))
    """

    shape: Shape
    cuts: tuple[Cut, ...]

    @property
    def grid(self) -> Shape:
        """The number of boxes along each axis."""
        return tuple(
            -(-length // cut) if isinstance(cut, int) else len(cut)
            for length, cut in zip(self.shape, self.cuts, strict=True)
        )

    @property
    def count(self) -> int:
        """The number of boxes."""
        return prod(self.grid)

    def box(self, number: int) -> Box:
        """Return box `number`. Raises `IndexError` unless ``0 <= number < count``."""
        if not 0 <= number < self.count:
            raise IndexError(f"box {number} of {self.count}")
        return self.at(unravelled(number, self.grid))

    def at(self, index: Sequence[int]) -> Box:
        """Return the box at a position in the grid of boxes."""
        return tuple(map(_interval, self.shape, self.cuts, index))

    def before(self, axis: int, position: int) -> int:
        """Count the intervals of an axis that end at or before `position`, a boundary of intervals."""
        cut = self.cuts[axis]
        return -(-position // cut) if isinstance(cut, int) else bisect_right(cut, position)

    def find(self, axis: int, position: int) -> int:
        """Return the interval of an axis that holds element `position`."""
        cut = self.cuts[axis]
        return position // cut if isinstance(cut, int) else bisect_right(cut, position)

    def ends(self, axis: int) -> Sequence[int]:
        """Return where the intervals of an axis end, and 0 before them.

        >>> list(Tiling((5,), (2,)).ends(0)), list(Tiling((5,), ((1, 5),)).ends(0))
        ([0, 2, 4, 5], [0, 1, 5])
        """
        length, cut = self.shape[axis], self.cuts[axis]
        if isinstance(cut, int):
            return [*range(0, length, cut), length] if length else [0]
        return (0, *cut)

    @property
    def longest(self) -> Shape:
        """The greatest length of a box along each axis."""
        return tuple(
            min(cut, max(1, length)) if isinstance(cut, int) else max(map(sub, cut, (0, *cut)), default=1)
            for length, cut in zip(self.shape, self.cuts, strict=True)
        )

    def to_json(self) -> list[JSON]:
        """Return the cuts as JSON; the shape is that of the array."""
        return [cut if isinstance(cut, int) else list(cut) for cut in self.cuts]

    @classmethod
    def from_json(cls, shape: Shape, cuts: JSONCuts) -> Self:
        """Parse the result of `to_json`. Raises `ValueError` or `TypeError` for what tiles no array of that shape."""
        found = tuple(cut if isinstance(cut, int) else tuple(cut) for cut in cuts)
        for length, cut in zip(shape, found, strict=True):
            ends = (0, cut) if isinstance(cut, int) else (0, *cut)
            if any(a >= b for a, b in pairwise(ends)) or not (isinstance(cut, int) or ends[-1] == length):
                raise ValueError(f"{cut!r} does not tile an axis of length {length}")
        return cls(tuple(shape), found)


def ends_within(length: int, ends: Cut, among: Cut) -> bool:
    """Return whether the intervals of `ends` end where intervals of `among` end, on an axis of some `length`.

    >>> ends_within(10, 6, 3), ends_within(10, 4, 3), ends_within(10, (3, 10), 3), ends_within(10, 5, (2, 5, 10))
    (True, False, True, True)
    """
    if isinstance(ends, int) and isinstance(among, int):
        return ends >= length or ends % among == 0
    inner = range(ends, length, ends) if isinstance(ends, int) else ends[:-1]
    if isinstance(among, int):
        return all(end % among == 0 for end in inner)
    return len(inner) <= len(among) and set(inner) <= set(among)


def unravelled(number: int, grid: Sequence[int]) -> Coords:
    """Return the position of item `number` of a grid in C order.

    >>> unravelled(5, (2, 3))
    (1, 2)
    """
    index: list[int] = []
    for count in reversed(grid):
        number, here = divmod(number, count)
        index.append(here)
    return tuple(reversed(index))


def ravelled(index: Sequence[int], grid: Sequence[int]) -> int:
    """Return the number of the item at `index` of a grid: the inverse of `unravelled`.

    >>> ravelled((1, 2), (2, 3))
    5
    """
    number = 0
    for here, count in zip(index, grid, strict=True):
        number = number * count + here
    return number


def _interval(length: int, cut: Cut, index: int) -> slice:
    if isinstance(cut, int):
        return slice(index * cut, min(length, (index + 1) * cut))
    return slice(cut[index - 1] if index else 0, cut[index])


def tiled(axes: Sequence[Axis], lengths: Sequence[int]) -> Tiling:
    """Tile the array with `axes` by boxes of whole chunks, each at most as long as `lengths`, or one chunk, along each axis.

    No chunk belongs to two boxes, however chunks differ in size.
    """
    return Tiling(
        tuple(axis.length for axis in axes), tuple(_cut(axis, most) for axis, most in zip(axes, lengths, strict=True))
    )


def _cut(axis: Axis, most: int) -> Cut:
    if axis.uniform is not None:
        chunks = -(-axis.length // axis.uniform) if most >= axis.length else most // axis.uniform
        return axis.uniform * max(1, chunks)
    ends: list[int] = []
    begin = 0
    for index in range(axis.nchunks):
        stop = min(axis.start(index) + axis.size(index), axis.length)
        if ends and stop - begin <= most:
            ends[-1] = stop
        else:
            begin = axis.start(index)
            ends.append(stop)
    return tuple(ends)
