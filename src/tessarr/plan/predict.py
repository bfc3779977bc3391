"""What a plan costs, computed from its tilings: no data is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from math import prod

from tessarr.codecs.sharding import ShardingCodec
from tessarr.common.counted import counted
from tessarr.engine.processors import processors
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import Sizes, chunks_read, innermost, longest_chunks
from tessarr.plan.manifest import Manifest, PlannedNode
from tessarr.plan.requests import Shards, gets, network_of, puts, reads_of_shards, shard_nbytes
from tessarr.plan.strategies.simulate import TaskCosts
from tessarr.plan.strategies.strategy import Networks, StageCosts, Strategy, costs_of_stages, requests
from tessarr.plan.tiling import tiled
from tessarr.types import JSONObject, Shape


@dataclass(frozen=True, slots=True)
class ArrayCosts:
    """The costs of one array. Bytes are those of elements in memory, before they are encoded."""

    path: str
    strategy: str
    why: str
    tasks: int
    blocks: int
    """Blocks do not depend on each other: more parts than blocks have nothing to do."""
    chunks_read: int
    """Chunks of the source that are read, whole; of a file without chunks, parts, one for each box."""
    requests: int
    """Requests that read the source and what is between stages, and that write: one for a chunk or a stored value; for a shard,
    one that reads it whole, or where less than half of its inner chunks are wanted two: for its index, then for these. There
    are fewer where chunks are not stored, and where shards have at most half a MiB, which may be read whole. Object stores are
    sent more for long values, and for inner chunks that lie far apart, if chunks do not compress. What is read back to be
    verified comes on top, and so do the documents and two listings of the source."""
    amplification: float
    """Chunks read over chunks of the source."""
    bytes_read: int
    bytes_written: int
    objects: int
    """Stored values written: shards, or else chunks."""
    temporary_objects: int
    """Objects of intermediate arrays that are written, and removed again."""
    temporary_bytes: int
    """The most bytes of intermediate arrays that a block of tasks keeps until it is complete."""
    peak_memory: int
    """The most bytes that a task holds, its threads included."""
    inexact: str
    """Why `peak_memory` is not exact to a tenth; empty where it is, if all chunks are stored."""
    advice: tuple[str, ...]
    """Better lengths of chunks, where the last one along an axis is a sliver."""


_SMALL = 10_000_000
"""The code of Python modules takes as much: of less memory, nothing is said about how exact it is."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a plan costs. ``print`` shows a table; `to_json` has the same."""

    operation: str
    arrays: tuple[ArrayCosts, ...]
    parts: int
    """How many parts of the plan have work to do: as many as there are blocks."""

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return sum(array.tasks for array in self.arrays)

    @property
    def peak_memory(self) -> int:
        """The most bytes that a task holds."""
        return max((array.peak_memory for array in self.arrays), default=0)

    def to_json(self) -> JSONObject:
        """Return the description as JSON."""
        return {
            "operation": self.operation,
            "tasks": self.tasks,
            "parts": self.parts,
            "peak_memory": self.peak_memory,
            "arrays": [asdict(array) for array in self.arrays],
        }

    def __str__(self) -> str:
        tasks, parts = counted(self.tasks, "task"), counted(self.parts, "part")
        lines = [f"{self.operation}: {tasks}, at most {_size(self.peak_memory)} each, for up to {parts}"]
        for array in self.arrays:
            each = "s" * (array.tasks == 1)
            writing = f" and write{each} {counted(array.objects, 'object')} ({_size(array.bytes_written)})"
            lines.append(
                f"/{array.path}: {counted(array.tasks, 'task')} read{each} {counted(array.chunks_read, 'chunk')}"
                f" ({_size(array.bytes_read)}, {array.amplification:.2f} times the source)"
                f"{writing if array.objects else ''}, by at most {counted(array.requests, 'request')}"
            )
            if array.why:
                lines.append(f"  {array.strategy}: {array.why}")
            if array.temporary_objects:
                lines.append(
                    f"  {counted(array.temporary_objects, 'temporary object')}; {counted(array.blocks, 'block')}, each of"
                    f" which keeps up to"
                    f" {_size(array.temporary_bytes)} until it is complete"
                )
            if array.inexact and array.peak_memory > _SMALL:
                lines.append(f"  memory: {array.inexact}")
            lines += [f"  {line}" for line in array.advice]
        return "\n".join(lines)


def described(manifest: Manifest) -> Description:
    """Describe what the tasks of a plan cost on this machine, whose processors say how many threads a task has."""
    networks = networks_of(manifest)
    found = []
    for node in manifest.nodes:
        if isinstance(node.metadata, ArrayMetadata) and node.strategy:
            costs = _costs(node, node.metadata, node.strategy, networks)
            if manifest.kind != "zarr" and prod(node.read) == 1:
                costs = _of_any_parts(costs, node.strategy)
            found.append(costs)
    return Description(manifest.operation, tuple(found), manifest.blocks)


def networks_of(manifest: Manifest) -> Networks:
    """Return how requests are made to the places of a plan."""
    return Networks(network_of(manifest.source.url), None if manifest.work is None else network_of(manifest.work.url))


def _costs(node: PlannedNode, metadata: ArrayMetadata, strategy: Strategy, networks: Networks) -> ArrayCosts:
    sizes = replace(Sizes.of(metadata, node.read, strategy.threads or processors()), converted=node.read_itemsize)
    read = chunks_read(strategy.stages.tilings[0], node.read)
    objects = prod(axis.nchunks for axis in sizes.axes)
    whole = prod(-(-n // max(1, size)) for n, size in zip(metadata.shape, node.read, strict=True))
    return ArrayCosts(
        path=node.path,
        strategy=strategy.name,
        why=strategy.why,
        tasks=node.tasks,
        blocks=node.blocks,
        chunks_read=read,
        requests=_reading(node, strategy, sizes, networks) + objects * puts(networks.target, value_nbytes(metadata)),
        amplification=read / whole if whole else 1.0,
        bytes_read=read * prod(node.read) * sizes.source_itemsize,
        bytes_written=prod(metadata.shape) * sizes.itemsize,
        objects=objects,
        temporary_objects=sum(tiling.count for tiling in strategy.stages.tilings[:-1]),
        temporary_bytes=_temporary_bytes(strategy) * sizes.itemsize,
        peak_memory=strategy.memory or strategy.peak(sizes),
        inexact=_inexact(metadata, strategy, sizes),
        advice=tuple(_advice(metadata.shape, longest_chunks(sizes.axes))),
    )


def _of_any_parts(costs: ArrayCosts, strategy: Strategy) -> ArrayCosts:
    """Return the costs where any part of a source can be read alone: each box of the first stage reads one."""
    boxes = strategy.stages.tilings[0].count
    return replace(costs, chunks_read=boxes, requests=costs.requests - costs.chunks_read + boxes)


def described_with(
    manifest: Manifest, change: Callable[[PlannedNode, ArrayMetadata, ArrayCosts], ArrayCosts]
) -> Description:
    """Describe the tasks of a plan, with the costs of each array as `change` makes them of those of boxes that are moved."""
    found = described(manifest)
    arrays = (
        (node, node.metadata) for node in manifest.nodes if isinstance(node.metadata, ArrayMetadata) and node.strategy
    )
    return replace(
        found,
        arrays=tuple(
            change(node, metadata, costs) for (node, metadata), costs in zip(arrays, found.arrays, strict=True)
        ),
    )


COMPRESSED = "at most that, as encoded chunks are as large as they compress"
IN_FLIGHT = "chunks that are requested at once need not come at once"
_LARGE = 0.2
"""Half of what threads hold is encoded: if it compresses well, and all of it is more of the memory of a task, the prediction
is inexact by more than a tenth."""


def _inexact(metadata: ArrayMetadata, strategy: Strategy, sizes: Sizes) -> str:
    """Return why the memory of a task is not predicted to a tenth; empty where it is."""
    if metadata.data_type.itemsize is None:
        return "elements vary in size, which is estimated"
    chain = innermost(metadata)
    if strategy.name == "regroup":
        return COMPRESSED if chain.encoded_size is None else ""
    if strategy.in_flight:
        return IN_FLIGHT
    inner = replace(sizes, write=chain.spec.shape, verified=True)
    if inner.threads * inner.per_thread > _LARGE * (strategy.memory or strategy.peak(sizes)):
        return "chunks are large beside it, and what they need depends on how they compress"
    return ""


def value_nbytes(metadata: ArrayMetadata) -> int:
    """Return the bytes of a stored value that does not compress."""
    sizes, first = Sizes.of(metadata, (), 1), metadata.codecs[0] if metadata.codecs else None
    stored = longest_chunks(sizes.axes)
    if isinstance(first, ShardingCodec):
        return shard_nbytes(stored, first.chunk_shape, sizes.itemsize)
    return prod(stored) * sizes.itemsize


def _reading(node: PlannedNode, strategy: Strategy, sizes: Sizes, networks: Networks) -> int:
    """Count the requests that read, and those that write what is between stages."""
    if strategy.name != "regroup":
        return requests(strategy, sizes, node.read_shards, networks)
    values = tiled(sizes.axes, longest_chunks(sizes.axes))  # each of which reads what it needs
    nbytes = prod(node.read) * sizes.itemsize
    if not node.read_shards:
        return chunks_read(values, node.read) * gets(networks.source, nbytes)
    return reads_of_shards(values, Shards(node.read_shards, node.read, networks.source, nbytes, whole=False))


def task_costs(manifest: Manifest, described: Description) -> Callable[[int], TaskCosts]:
    """Return a function of what a task moves: the mean of its stage."""
    arrays, blocks = iter(described.arrays), manifest.tasks_of_blocks(range(manifest.blocks))
    starts: list[int] = []
    found: list[TaskCosts] = []
    for node in manifest.nodes:
        if node.strategy is None or not isinstance(node.metadata, ArrayMetadata):
            continue
        of_node = list(islice(arrays, 1 if node.strategy.intermediates else len(node.strategy.stages.tilings)))
        costs = list(_stage_costs(node, node.metadata, node.strategy, of_node, manifest))
        for stages in islice(blocks, node.blocks):
            for tasks, moves in zip(stages, costs, strict=True):
                if not found or found[-1] is not moves:
                    starts.append(tasks.start)
                    found.append(moves)
    return lambda task: found[bisect_right(starts, task) - 1]


def _stage_costs(
    node: PlannedNode, metadata: ArrayMetadata, strategy: Strategy, described: Sequence[ArrayCosts], manifest: Manifest
) -> Iterator[TaskCosts]:
    if strategy.intermediates:
        sizes = replace(Sizes.of(metadata, node.read, 1), converted=node.read_itemsize)
        stages = costs_of_stages(strategy, sizes, node.read_shards, networks_of(manifest))
    else:
        stages = [
            StageCosts(one.tasks, one.bytes_read, one.bytes_written, one.requests - one.objects, one.objects)
            for one in described
        ]
    for number, (tasks, read, written, reading, objects) in enumerate(stages):
        again = manifest.verify and (
            not strategy.intermediates or number + 1 == len(stages)
        )  # what is between stages is not read back
        yield TaskCosts(
            (read + written * again) / max(1, tasks),
            written / max(1, tasks),
            (reading + objects * (1 + again)) / max(1, tasks),
        )


def _temporary_bytes(strategy: Strategy) -> int:
    """Return the elements of the intermediate arrays of the largest block."""
    if not strategy.intermediates or not strategy.stages.blocks.count:
        return 0
    block = strategy.stages.blocks.box(0)
    return len(strategy.intermediates) * prod([int(part.stop - part.start) for part in block])


def _advice(shape: Shape, chunks: Shape) -> Iterator[str]:
    """Propose another length where the last chunk along an axis is a sliver: has less than a tenth of the others.

    >>> list(_advice((721,), (20,)))
    ['axis 0: the last chunk has 1 of 20 elements; with chunks of 19, the last one has 18']
    """
    for axis, (length, chunk) in enumerate(zip(shape, chunks, strict=True)):
        if 0 < length % chunk * 10 < chunk < length:
            better = _without_sliver(length, chunk)
            yield (
                f"axis {axis}: the last chunk has {length % chunk} of {chunk} elements; with chunks of {better}, the last one"
                f" has {(length - 1) % better + 1}"
            )


_FULL = 0.9
"""A last chunk with so much of the elements of the others is about equal to them."""
_TRIED = 1000


def _without_sliver(length: int, chunk: int) -> int:
    """Return the length nearest to `chunk` whose last chunk is about equal, or else that which comes nearest to it."""
    lengths = [
        near
        for distance in range(1, min(chunk, _TRIED))
        for near in (chunk + distance, chunk - distance)
        if near <= length
    ]
    filled = {near: ((length - 1) % near + 1) / near for near in lengths} or {length: 1.0}
    return next((near for near, share in filled.items() if share >= _FULL), max(filled, key=filled.__getitem__))


def _size(nbytes: int) -> str:
    value = float(nbytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} PB"
