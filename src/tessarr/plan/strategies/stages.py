"""Number the tasks of an array that is moved in stages. Pure.

Each *stage* tiles the array by boxes; a task of a stage reads what the stage before wrote in its box. *Blocks* are boxes on
whose boundaries the boxes of all stages end, so that blocks do not depend on each other. Tasks are numbered block by block,
within a block stage by stage, and a task is computed from its number: nothing here has the size of the data.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import lcm, prod
from typing import NamedTuple, Self

from tessarr.indexing.boxes import Box
from tessarr.plan.tiling import Cut, JSONCuts, Tiling, ravelled, unravelled
from tessarr.types import Coords, JSONObject, Shape


class Step(NamedTuple):
    """The task of a number: the block that it belongs to, its stage (from 0), and its box."""

    block: int
    stage: int
    box: Box


@dataclass(frozen=True, slots=True)
class Stages:
    """Number the boxes of `tilings`, the last of which is that of the target, within `blocks`.

    >>> stages = Stages.of(Tiling((4, 4), (1, 4)), Tiling((4, 4), (2, 1)))
    >>> stages.count, stages.blocks.count, list(stages.ranges(1))
    (12, 2, [range(6, 8), range(8, 12)])
    >>> stages.locate(7)
    Step(block=1, stage=0, box=(slice(3, 4, None), slice(0, 4, None)))
    """

    blocks: Tiling
    tilings: tuple[Tiling, ...]

    @classmethod
    def of(cls, *tilings: Tiling) -> Self:
        """Choose the smallest blocks for stages."""
        shape = tilings[0].shape
        cuts = tuple(_common(length, [tiling.cuts[axis] for tiling in tilings]) for axis, length in enumerate(shape))
        return cls(Tiling(shape, cuts), tilings)

    @property
    def count(self) -> int:
        """The number of tasks."""
        return sum(tiling.count for tiling in self.tilings)

    def ranges(self, block: int) -> tuple[range, ...]:
        """Return the tasks of a block, stage by stage."""
        if len(self.tilings) == 1:
            return (range(block, block + 1),)
        index = unravelled(block, self.blocks.grid)
        first = sum(
            prod(grids[:axis]) * tiling.before(axis, part.start) * prod(tiling.grid[axis + 1 :])
            for tiling, grids in zip(self.tilings, self._grids(index), strict=True)
            for axis, part in enumerate(self.blocks.at(index))
        )
        ends = accumulate((prod(grid) for grid in self._grids(index)), initial=first)
        return tuple(range(start, stop) for start, stop in pairwise(ends))

    def _grids(self, index: Coords) -> list[Shape]:
        """Return how many boxes of each stage the block at `index` has along each axis."""
        return [
            tuple(
                tiling.before(axis, part.stop) - tiling.before(axis, part.start)
                for axis, part in enumerate(self.blocks.at(index))
            )
            for tiling in self.tilings
        ]

    def number(self, block: int, stage: int, index: Sequence[int]) -> int:
        """Return the task of the box at `index` of a stage, which lies in `block`: the inverse of `locate`.

        >>> Stages.of(Tiling((4, 4), (1, 4)), Tiling((4, 4), (2, 1))).number(1, 0, (3, 0))
        7
        """
        if len(self.tilings) == 1:
            return ravelled(index, self.blocks.grid)
        corner = self._corner(block, stage)
        within = [here - low for here, low in zip(index, corner, strict=True)]
        return self.ranges(block)[stage].start + ravelled(
            within, self._grids(unravelled(block, self.blocks.grid))[stage]
        )

    def _corner(self, block: int, stage: int) -> list[int]:
        """Return the position, in the grid of a stage, of the first box of a block."""
        return [self.tilings[stage].before(axis, part.start) for axis, part in enumerate(self.blocks.box(block))]

    def locate(self, task: int) -> Step:
        """Return the task of a number. Raises `IndexError` unless ``0 <= task < count``."""
        if not 0 <= task < self.count:
            raise IndexError(f"task {task} of {self.count}")
        if len(self.tilings) == 1:
            return Step(task, 0, self.blocks.box(task))
        block = bisect_right(range(self.blocks.count), task, key=lambda number: self.ranges(number)[0].start) - 1
        index = unravelled(block, self.blocks.grid)
        ranges = self.ranges(block)
        stage = next(number for number, tasks in enumerate(ranges) if task in tasks)
        within = unravelled(task - ranges[stage].start, self._grids(index)[stage])
        corner = self._corner(block, stage)
        return Step(
            block, stage, self.tilings[stage].at([low + here for low, here in zip(corner, within, strict=True)])
        )

    def to_json(self) -> JSONObject:
        """Return the cuts of blocks and stages as JSON; the shape is that of the array."""
        return {"blocks": self.blocks.to_json(), "stages": [tiling.to_json() for tiling in self.tilings]}

    @classmethod
    def from_json(cls, shape: Shape, blocks: JSONCuts, stages: Sequence[JSONCuts]) -> Self:
        """Parse the members of the result of `to_json`."""
        return cls(Tiling.from_json(shape, blocks), tuple(Tiling.from_json(shape, cuts) for cuts in stages))


def _common(length: int, cuts: Sequence[Cut]) -> Cut:
    """Return the boundaries that all cuts of an axis have."""
    if all(isinstance(cut, int) for cut in cuts):
        # a box that reaches the end has no other boundary
        inner = [cut for cut in cuts if isinstance(cut, int)]
        period = lcm(*inner)
        return period if period < length else max(1, length)
    ends = [set(cut) if not isinstance(cut, int) else {*range(cut, length, cut), length} for cut in cuts]
    return tuple(sorted(set.intersection(*ends)))
