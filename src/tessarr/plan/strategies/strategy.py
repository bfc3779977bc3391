"""Choose how an array is moved to another chunking: the strategy that costs least. Pure.

Reading a byte costs 1, encoding and writing it `WRITE`, a request as much as `REQUEST` bytes. So it pays to move everything
twice where reading directly would read each chunk several times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Literal, NamedTuple, Self, TypeAlias, TypedDict

from tessarr.errors import UnsupportedOperationError
from tessarr.plan.cost import NOTHING_IN_FLIGHT, Sizes, Sweep, choose_box, chunks_read, sweep_of
from tessarr.plan.requests import Network, Shards, gets, puts, reads_of_shards, shard_nbytes
from tessarr.plan.strategies.staged import Intermediate, in_two_stages
from tessarr.plan.strategies.stages import Stages
from tessarr.plan.tiling import JSONCuts, Tiling
from tessarr.types import JSONObject, Shape

Name: TypeAlias = Literal["auto", "direct", "staged", "scratch", "regroup"]
WRITE = 2
REQUEST = 1 << 20
"""10 ms at 100 MB/s."""
LOCAL = "local"
"""For the strategy *scratch*: the worker's own directory for temporary files (``TMPDIR``)."""


class StrategyJSON(TypedDict):
    """A `Strategy` in JSON."""

    name: Name
    why: str
    threads: int
    in_flight: int
    memory: int
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
    threads: int = 0
    """How many threads a task has; 0 for as many as the process may use."""
    in_flight: int = 0
    """The most bytes of chunks whose requests a task has in flight; 0 for as many as the process may have."""
    memory: int = 0
    """The most bytes that a task holds; 0 where that was not planned."""

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return self.stages.blocks.count if self.name == "scratch" else self.stages.count

    def ranges(self, block: int) -> tuple[range, ...]:
        """Return the tasks of a block, stage by stage; one where the worker keeps what is between the stages."""
        return (range(block, block + 1),) if self.name == "scratch" else self.stages.ranges(block)

    def reads(self, source: Shape) -> list[tuple[Tiling, Shape]]:
        """Return the boxes of each stage, and the chunks that it reads as one."""
        units = [source, *(between.chunks for between in self.intermediates)]
        return list(zip(self.stages.tilings, units, strict=True))

    def sweep(self, sizes: Sizes) -> Sweep | None:
        """Return how tasks go over their boxes; ``None``: they hold them whole."""
        return sweep_of(sizes, self.stages.tilings[0].longest) if self.name == "direct" and self.threads else None

    def peak(self, sizes: Sizes) -> int:
        """Return the most bytes that a task holds."""
        if (sweep := self.sweep(sizes)) is not None:
            return sizes.peak_in_bands(self.stages.tilings[0].longest, sweep)
        units = [sizes.read, *(between.chunks for between in self.intermediates), sizes.write]
        stops = [sizes.stops, *(between.shards for between in self.intermediates)]
        stages = [
            (
                replace(
                    sizes if stage == len(self.intermediates) else replace(sizes.of_first_stage, write=write),
                    read=read,
                    converted=0 if stage else sizes.converted,
                    stops=stops[stage],
                    encoded=(
                        sizes.encoded[0] if stage == 0 else True,
                        sizes.encoded[1] or stage < len(self.intermediates),
                    ),
                ),
                [part.stop - part.start for part in tiling.box(0)],
            )
            for stage, (tiling, (read, write)) in enumerate(zip(self.stages.tilings, pairwise(units), strict=True))
            if tiling.count
        ]
        needs = [one.needs(box) for one, box in stages]  # of all stages a process keeps something
        besides = reversed(needs) if len(needs) > 1 else [None]
        return max(
            (replace(one, beside=beside).peak(box) for (one, box), beside in zip(stages, besides, strict=False)),
            default=0,
        )

    def to_json(self) -> JSONObject:
        """Return the strategy as JSON."""
        shapes = [{"shards": list(between.shards), "chunks": list(between.chunks)} for between in self.intermediates]
        return {
            "name": self.name,
            "why": self.why,
            "threads": self.threads,
            "in_flight": self.in_flight,
            "memory": self.memory,
            "intermediates": shapes,
            **self.stages.to_json(),
        }

    @classmethod
    def from_json(cls, shape: Shape, obj: StrategyJSON) -> Self:
        """Parse the result of `to_json`, for an array of `shape`."""
        shapes = (Intermediate(tuple(one["shards"]), tuple(one["chunks"])) for one in obj["intermediates"])
        stages = Stages.from_json(shape, obj["blocks"], obj["stages"])
        return cls(obj["name"], stages, tuple(shapes), obj["why"], obj["threads"], obj["in_flight"], obj["memory"])


def direct(tiling: Tiling, why: str = "") -> Strategy:
    """Move boxes from the source to the target in one step."""
    return Strategy("direct", Stages.of(tiling), (), why)


LOADED = 1_000_000
"""Bytes of code and buffers that a process has loaded once it has moved encoded chunks, as measured."""
READ_BACK = 8 << 20
"""Bytes of a value that are read back at once, where encoded chunks are moved."""


def regrouping(sizes: Sizes, memory: int, why: str, *, streamed: bool) -> Strategy:
    """Move encoded chunks; a task holds one stored value of the target, whole again to write it unless it is `streamed`, and
    what is read back of it: all, or two parts of a long one."""
    value = sizes.itemsize * prod(sizes.smallest)
    held = (value if value <= READ_BACK else 2 * READ_BACK) + (0 if streamed else value)
    strategy = direct(choose_box(replace(sizes, threads=0, held=held, in_flight=NOTHING_IN_FLIGHT), memory), why)
    return replace(strategy, name="regroup", memory=value + held + LOADED)


def choose(sizes: Sizes, memory: int, name: Name = "auto", *, scratch: bool = False) -> Strategy:
    """Choose a strategy for tasks of at most `memory` bytes, or make the one that is named. `scratch`: workers have disks.

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
    in_two = Strategy(
        ("scratch" if scratch else "staged") if name == "auto" else name, found[0], (found[1],), "it was requested"
    )
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
    for stage, (tiling, unit) in enumerate(strategy.reads(sizes.read)):
        total += chunks_read(tiling, unit) * prod(unit) * (sizes.itemsize if stage else sizes.source_itemsize)
    return total + REQUEST * requests(strategy, sizes)


class Networks(NamedTuple):
    """How requests are made to the source, and to the place where tasks write; ``None`` for local ones."""

    source: Network | None = None
    target: Network | None = None


NO_NETWORK = Networks()


def requests(strategy: Strategy, sizes: Sizes, shards: Shape = (), networks: Networks = NO_NETWORK) -> int:
    """Count the requests for chunks of the source, or `shards` of these, and those that read and write intermediate arrays."""
    between = _between(strategy, networks)
    writing = (
        tiling.count * puts(between, shard_nbytes(array.shards, array.chunks, sizes.itemsize))
        for tiling, array in zip(strategy.stages.tilings, strategy.intermediates, strict=False)
    )
    return sum(_reading(strategy, sizes, shards, networks)) + sum(writing)


def _between(strategy: Strategy, networks: Networks) -> Network | None:
    return None if strategy.name == "scratch" else networks.target


def _reading(strategy: Strategy, sizes: Sizes, shards: Shape, networks: Networks) -> list[int]:
    """Count the requests by which each stage reads: those for a chunk, and those for shards."""
    first, *later = strategy.stages.tilings
    network, nbytes = networks.source, prod(sizes.read) * sizes.source_itemsize
    return [
        reads_of_shards(first, Shards(shards, sizes.read, network, nbytes))
        if shards
        else chunks_read(first, sizes.read) * gets(network, nbytes),
        *(
            reads_of_shards(
                tiling,
                Shards(array.shards, array.chunks, _between(strategy, networks), prod(array.chunks) * sizes.itemsize),
            )
            for tiling, array in zip(later, strategy.intermediates, strict=True)
        ),
    ]


class StageCosts(NamedTuple):
    """What the tasks of a stage cost together: bytes of elements that are read and written, requests that read, and objects."""

    tasks: int
    read: int
    written: int
    requests: int
    objects: int


def costs_of_stages(strategy: Strategy, sizes: Sizes, shards: Shape, networks: Networks) -> list[StageCosts]:
    """Return the costs of each stage; of one whose worker keeps what is between the stages, those of its network. `shards`:
    those of the source."""
    whole = prod(sizes.shape) * sizes.itemsize
    objects = [*(tiling.count for tiling in strategy.stages.tilings[:-1]), prod(axis.nchunks for axis in sizes.axes)]
    found, reading = [], _reading(strategy, sizes, shards, networks)
    for number, (tiling, unit) in enumerate(strategy.reads(sizes.read)):
        nbytes = chunks_read(tiling, unit) * prod(unit) * (sizes.itemsize if number else sizes.source_itemsize)
        found.append(StageCosts(tiling.count, nbytes, whole, reading[number], objects[number]))
    if strategy.name == "scratch":
        return [StageCosts(strategy.tasks, found[0].read, whole, found[0].requests, objects[-1])]
    return found
