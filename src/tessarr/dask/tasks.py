"""Store dask arrays by tasks of any executor, each of which computes and writes one block of whole stored values.

A task gets the part of the graph that its block needs, and computes it alone: nothing passes between tasks, and no scheduler
sees a graph. What several blocks need, each of them computes.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import dask.array as da
from dask.base import optimize
from dask.local import get_sync
from dask.optimization import cull

from tessarr.common.counted import counted
from tessarr.core.array import Array
from tessarr.dask.alignment import aligned
from tessarr.dask.targets import target_of
from tessarr.errors import FailedTasksError
from tessarr.indexing.boxes import Box
from tessarr.plan.executors import Ended, Running, executor_from, in_turn, stopping, submitted
from tessarr.plan.strategies.ready import Ready
from tessarr.plan.tiling import Tiling, unravelled
from tessarr.stores.virtual.icechunk import forked, merge

if TYPE_CHECKING:
    from tessarr.dask.targets import InMemoryTarget
    from tessarr.stores.base import Store


Key: TypeAlias = "str | tuple[str | int, ...]"
Target: TypeAlias = "Array | InMemoryTarget | bytes"
"""What a block is written to: an array, or the pickle of one in a fork of an Icechunk session."""


class Write(NamedTuple):
    """A dask array, and where it is to be written."""

    source: da.Array
    target: Array
    region: Box


@dataclass(frozen=True, slots=True)
class Block:
    """A block: the part of a graph that computes it, its key there, and the box of a target that it is written to.

    It is not a tuple, because `distributed` looks for tasks in the tuples among the arguments of a task, and would wait
    for those of `graph` as if the scheduler had them.
    """

    graph: Mapping[Key, object]
    key: Key
    target: Target
    box: Box


class _Blocks:
    """The blocks of one write."""

    def __init__(self, write: Write, target: Target) -> None:
        blocks = aligned(write.source.chunks, write.target, write.region)
        source = write.source.rechunk(blocks)  # pyright: ignore[reportArgumentType] - dask declares its default as the type
        (source,) = optimize(source)
        self._graph = dict(source.__dask_graph__())
        self._name = source.name
        self._tiling = Tiling(source.shape, tuple(tuple(accumulate(sizes)) for sizes in source.chunks))
        self._region = write.region
        self._target = target
        self.count = 0 if 0 in source.shape else self._tiling.count

    def block(self, number: int) -> Block:
        """Return the block of a number."""
        key: Key = (self._name, *unravelled(number, self._tiling.grid))
        graph, _ = cull(self._graph, [key])
        box = (
            slice(low.start + part.start, low.start + part.stop)
            for low, part in zip(self._region, self._tiling.box(number), strict=True)
        )
        return Block(graph, key, self._target, tuple(box))


def store_block(block: Block) -> Store | None:
    """Compute a block, and write it to its target. Returns the fork that was written to."""
    values = get_sync(block.graph, block.key)
    if isinstance(block.target, bytes):
        array: Array = pickle.loads(block.target)
        array[block.box or ...] = values
        return array._store
    block.target[block.box or ...] = values
    return None


def store_on(executor: object, x: da.Array, z: Array, region: Box) -> None:
    """Write `x` to a region of `z` by tasks on `executor`; in an Icechunk session by forks of it."""
    fork = forked(z._store)
    if fork is None:
        carry_out([Write(x, z, region)], executor)
        return
    target = Array._opened(fork, z._path, z._metadata, read_only=False, config=None)
    carry_out([Write(x, target, region)], executor, fork)
    merge(z._store, fork)


def carry_out(writes: Sequence[Write], executor: object, fork: Store | None = None, *, retries: int = 3) -> None:
    """Write arrays by tasks on `executor`; see `tessarr.plan.Plan.run` for what it may be.

    `fork`: the store of the targets, where it is a fork of an Icechunk session. Tasks write to pickles of it, which are merged
    into it when they end. Raises `FailedTasksError` naming the tasks that failed.
    """
    blocks = [
        _Blocks(write, target_of(write.target) if fork is None else pickle.dumps(write.target)) for write in writes
    ]
    starts = list(accumulate((one.count for one in blocks), initial=0))
    context, slots = executor_from(executor, None)
    failed: dict[int, BaseException] = {}
    running: Running[Store | None] = {}
    with context as chosen, stopping(chosen, running, lambda _task, _fork: None):

        def block(task: int) -> Block:
            number = bisect_right(starts, task) - 1
            return blocks[number].block(task - starts[number])

        def submit(tasks: Sequence[int]) -> Future[Ended[Store | None]]:
            return chosen.submit(in_turn, store_block, list(map(block, tasks)))

        ready = Ready([(0, [range(starts[-1])])], lambda _block, _last: None)
        for task, result in submitted(submit, ready, slots, retries, running):
            if isinstance(result, BaseException):
                failed[task] = result
            elif result is not None and fork is not None:
                merge(fork, result)
    if failed:
        raise FailedTasksError(
            f"{len(failed)} of {counted(starts[-1], 'task')} failed", failed,
            got=f"task {min(failed)}: {failed[min(failed)]!r}",
            hint="Write again: each task replaces what it wrote",
        )  # fmt: skip
