"""Tile an array by boxes of whole chunks that are computed from their number. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Self, TypeAlias

from tessarr.grids.base import Axis
from tessarr.indexing.boxes import Box
from tessarr.types import JSON, Shape

Cut: TypeAlias = int | tuple[int, ...]
"""How one axis is tiled: the length of each interval, or the positions where intervals end."""


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
        parts = []
        for length, cut, count in reversed(list(zip(self.shape, self.cuts, self.grid, strict=True))):
            number, index = divmod(number, count)
            parts.append(_interval(length, cut, index))
        return tuple(reversed(parts))

    def to_json(self) -> list[JSON]:
        """Return the cuts as JSON; the shape is that of the array."""
        return [cut if isinstance(cut, int) else list(cut) for cut in self.cuts]

    @classmethod
    def from_json(cls, shape: Shape, cuts: Sequence[int | Sequence[int]]) -> Self:
        """Parse the result of `to_json`."""
        return cls(tuple(shape), tuple(cut if isinstance(cut, int) else tuple(cut) for cut in cuts))


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
