"""Choose how an array is moved to another chunking: the strategy that costs least. Pure.

Reading a byte costs 1, encoding and writing it `WRITE`, a request as much as `REQUEST` bytes. So it pays to move everything
twice where reading directly would read each chunk several times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Literal, Self, TypeAlias, TypedDict

from tessarr.errors import UnsupportedOperationError
from tessarr.plan.cost import Sizes, choose_box, chunks_read
from tessarr.plan.strategies.staged import Intermediate, in_two_stages
from tessarr.plan.strategies.stages import Stages
from tessarr.plan.tiling import JSONCuts, Tiling
from tessarr.types import JSONObject, Shape

Name: TypeAlias = Literal["auto", "direct", "staged"]
WRITE = 2
REQUEST = 1 << 20
"""10 ms at 100 MB/s."""


class StrategyJSON(TypedDict):
    """A `Strategy` in JSON."""

    name: Name
    why: str
    intermediates: Sequence[Mapping[str, Sequence[int]]]
    blocks: JSONCuts
    stages: Sequence[JSONCuts]


@dataclass(frozen=True, slots=True)
class Strategy:
    """How an array is moved."""

    name: Name
    stages: Stages
    intermediates: tuple[Intermediate, ...] = ()
    """The arrays between the stages."""
    why: str = ""

    def reads(self, source: Shape) -> list[tuple[Tiling, Shape]]:
        """Return the boxes of each stage, and the chunks that it reads as one."""
        units = [source, *(between.chunks for between in self.intermediates)]
        return list(zip(self.stages.tilings, units, strict=True))

    def peak(self, sizes: Sizes) -> int:
        """Return the most bytes that a task holds."""
        units = [sizes.read, *(between.chunks for between in self.intermediates), sizes.write]
        return max(
            (
                replace(sizes, read=read, write=write).peak([part.stop - part.start for part in tiling.box(0)])
                for tiling, (read, write) in zip(self.stages.tilings, pairwise(units), strict=True)
                if tiling.count
            ),
            default=0,
        )

    def to_json(self) -> JSONObject:
        """Return the strategy as JSON."""
        shapes = [{"shards": list(between.shards), "chunks": list(between.chunks)} for between in self.intermediates]
        return {"name": self.name, "why": self.why, "intermediates": shapes, **self.stages.to_json()}

    @classmethod
    def from_json(cls, shape: Shape, obj: StrategyJSON) -> Self:
        """Parse the result of `to_json`, for an array of `shape`."""
        shapes = (Intermediate(tuple(one["shards"]), tuple(one["chunks"])) for one in obj["intermediates"])
        return cls(obj["name"], Stages.from_json(shape, obj["blocks"], obj["stages"]), tuple(shapes), obj["why"])


def direct(tiling: Tiling, why: str = "") -> Strategy:
    """Move boxes from the source to the target in one step."""
    return Strategy("direct", Stages.of(tiling), (), why)


def choose(sizes: Sizes, memory: int, name: Name = "auto") -> Strategy:
    """Choose a strategy for tasks of at most `memory` bytes, or make the one that is named.

    Raises `BaseZarrError` where one stored chunk needs more memory, `UnsupportedOperationError` where the named strategy does.
    """
    in_one = direct(
        choose_box(sizes, memory), "it was requested" if name == "direct" else "no intermediate array helps"
    )
    found = in_two_stages(sizes, memory) if name != "direct" else None
    if found is None:
        if name in ("auto", "direct") or in_one.stages.count <= 1:
            return in_one
        raise UnsupportedOperationError(
            f"the strategy {name!r} needs more memory for this array",
            expected=f"tasks of at most {memory} bytes",
            hint="Allow more memory, or leave the strategy to the plan",
        )
    in_two = Strategy("staged" if name == "auto" else name, found[0], (found[1],), "it was requested")
    if name != "auto":
        return in_two
    once, twice = _cost(in_one, sizes), _cost(in_two, sizes)
    reads = chunks_read(in_one.stages.tilings[0], sizes.read) / max(
        1, chunks_read(Tiling(sizes.shape, sizes.read), sizes.read)
    )
    why = f"to read the source {reads:.2f} times costs {once / twice:.2f} times as much as an intermediate array"
    return replace(in_one if once <= twice else in_two, why=why)


def _cost(strategy: Strategy, sizes: Sizes) -> float:
    """Return the cost of a strategy, in bytes read."""
    whole = prod(sizes.shape) * sizes.itemsize
    total = float(WRITE * whole * len(strategy.stages.tilings))
    for tiling, unit in strategy.reads(sizes.read):
        total += chunks_read(tiling, unit) * prod(unit) * sizes.itemsize
    return total + REQUEST * requests(strategy, sizes.read)


def requests(strategy: Strategy, read: Shape) -> int:
    """Count the requests for chunks of the source, for shards of intermediate arrays (an index, then chunks), and to write
    these."""
    first, *later = strategy.stages.tilings
    between = strategy.intermediates
    return (
        chunks_read(first, read)
        + sum(2 * chunks_read(tiling, array.shards) for tiling, array in zip(later, between, strict=True))
        + sum(tiling.count for tiling in strategy.stages.tilings[:-1])
    )
