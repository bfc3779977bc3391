"""Carry out one task of a plan: read a box of the source, write the stored values of the target that it covers.

A task writes whole stored values, reads nothing that any task of the plan writes, and writes the same bytes whenever it runs.
So it may run anywhere, twice, or again after it was killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from threading import Lock
from typing import Protocol, runtime_checkable

import numpy as np

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.dtypes.base import DataType
from tessarr.engine.pool import for_each
from tessarr.engine.processors import processors
from tessarr.indexing.boxes import Box
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import Sizes, Sweep
from tessarr.plan.manifest import Manifest, PlannedNode
from tessarr.plan.markers import Milestones, Receipt, digest_of
from tessarr.plan.publish import begin, publish
from tessarr.plan.sources import check_unchanged
from tessarr.plan.strategies.cast import cast
from tessarr.plan.strategies.intermediate import keys_of_block, open_intermediate, open_target, pieces_of
from tessarr.plan.strategies.limits import limited
from tessarr.plan.strategies.regroup import regroup
from tessarr.stores.base import Store
from tessarr.stores.path import join
from tessarr.tools.digest import box_digest
from tessarr.tools.sources.base import Source, SourceArray
from tessarr.tools.sources.zarr import ZarrSource
from tessarr.tools.transfer import check_stored, values_in
from tessarr.types import JSON, AnyArray


class Work(Protocol):
    """What a plan does, with its places opened. Threads may share it."""

    @property
    def source(self) -> Source | None:
        """What tasks read, which may not change meanwhile; ``None`` where that is not watched."""
        ...

    def run(self, task: int, *, marked: bool = True) -> Receipt:
        """Carry out a task. `marked`: a marker will hold the receipt, which has a digest only then."""
        ...

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSON:
        """Publish what the tasks wrote, or combine what they found, by task. Returns the result of the plan.

        May be stopped anywhere, and repeated.
        """
        ...


@runtime_checkable
class Begins(Protocol):
    """The work of a plan that claims its places, and looks at its target, before its first task."""

    def begin(self, *, resumed: bool) -> None:
        """Look at the target, and at what was written, where the plan is `resumed`. May be repeated.

        Raises `ConflictError` where another client has made something at the target, or has removed what tasks wrote.
        """
        ...


class Worker:
    """The work of a plan whose tasks write boxes of elements."""

    def __init__(self, manifest: Manifest, source: Source, store: Store, path: str) -> None:
        self.manifest = manifest
        self.store, self.path = store, path
        self._intermediates = join(path, manifest.intermediates)
        self.source = source
        self._arrays = {node.path: node for node in source.nodes if isinstance(node, SourceArray)}
        self._targets: dict[str, Array] = {}
        if isinstance(source, ZarrSource):
            source.watch()
        self._lock = Lock()
        limits = [node.strategy.threads for node in manifest.nodes if node.strategy is not None]
        self._threads = min(filter(None, limits), default=0)
        flights = [node.strategy.in_flight for node in manifest.nodes if node.strategy is not None]
        self._in_flight = min(filter(None, flights), default=0)

    def begin(self, *, resumed: bool) -> None:
        """Look at the target, and claim the place of work. May be repeated."""
        check_unchanged(self.source)
        begin(self.manifest, self.store, self.path, resumed=resumed)

    def run(self, task: int, *, marked: bool = True) -> Receipt:
        """Carry out a task. Raises `BaseZarrError` where the values read back differ from those written."""
        node, number = self.manifest.locate(task)
        with limited(min(processors(), self._threads), self._in_flight) if self._threads else nullcontext():
            return self._run(task, node, number, marked)

    def _run(self, task: int, node: PlannedNode, number: int, marked: bool) -> Receipt:
        assert node.strategy is not None
        if node.strategy.name == "regroup":
            return self._regroup(task, node, node.strategy.stages.locate(number).box, marked)
        if node.strategy.name != "scratch":
            return self._move(task, node, number, self.store, self._intermediates, marked)
        from tessarr.plan.strategies.scratch import scratch_store

        with scratch_store(str(self.manifest.options["scratch"]), self.manifest.id) as store:
            stages = node.strategy.stages.ranges(number)
            found = [[self._move(step, node, step, store, "", marked) for step in steps] for steps in stages]
        return _combined(task, found[-1], marked)

    def _move(
        self, task: int, node: PlannedNode, number: int, store: Store, between: str, marked: bool
    ) -> Receipt:  # fmt: skip
        """Carry out a step of a stage; `store` has the intermediate arrays, at the path `between`."""
        assert node.strategy is not None
        _, stage, box = node.strategy.stages.locate(number)
        if stage == 0 and (sweep := self._sweep(node)) is not None:
            bands = in_bands(self._arrays[node.source], box, sweep)
            return _combined(
                task,
                [
                    self._store(number, node, band, self._cast(node, values), marked)
                    for number, (band, values) in enumerate(bands)
                ],
                marked,
            )
        if stage == 0:
            values = self._cast(node, self._read(node.source, box))
        else:
            values = values_in(self._intermediate(node, stage - 1, store, between), box)
        if stage < len(node.strategy.intermediates):
            self._intermediate(node, stage, store, between)[box or ...] = values
            return Receipt(task, int(values.nbytes), "")
        return self._store(task, node, box, values, marked)

    def _sweep(self, node: PlannedNode) -> Sweep | None:
        assert node.strategy is not None
        assert isinstance(node.metadata, ArrayMetadata)
        if not can_sweep(self._arrays[node.source], node.metadata):
            return None
        sizes = Sizes.of(node.metadata, node.read, node.strategy.threads)
        return node.strategy.sweep(replace(sizes, converted=node.read_itemsize, stops=node.read_shards or node.read))

    @staticmethod
    def _cast(node: PlannedNode, values: AnyArray) -> AnyArray:
        assert isinstance(node.metadata, ArrayMetadata)
        return cast(values, node.metadata.dtype)

    def _store(self, task: int, node: PlannedNode, box: Box, values: AnyArray, marked: bool) -> Receipt:
        """Write whole stored values of the target."""
        target = self._target(node)
        target[box or ...] = values
        if self.manifest.verify:
            compare(values, target, box)
        return Receipt(task, int(values.nbytes), box_digest(values).hex() if marked else "")

    def _regroup(self, task: int, node: PlannedNode, box: Box, marked: bool) -> Receipt:
        top = getattr(self.source, "node", None)
        source = top[node.source] if isinstance(top, Group) and node.source else top
        assert isinstance(source, Array)
        moved = regroup(source, self._target(node), box, verify=self.manifest.verify, digested=marked)
        return Receipt(task, *moved)

    def _read(self, path: str, box: Box) -> AnyArray:
        with nullcontext() if self.source.parallel else self._lock:
            return self._arrays[path].read(box)

    def _target(self, node: PlannedNode) -> Array:
        assert isinstance(node.metadata, ArrayMetadata)
        with self._lock:
            array = self._targets.get(node.path)
            if array is None:
                array = self._targets[node.path] = open_target(self.store, join(self.path, node.path), node.metadata)
        return array

    def _intermediate(self, node: PlannedNode, stage: int, store: Store, between: str) -> Array:
        assert node.strategy is not None
        assert isinstance(node.metadata, ArrayMetadata)
        path = join(between, join(node.path, str(stage)))
        return open_intermediate(store, path, node.metadata, node.strategy.intermediates[stage])

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSON:
        """Publish the result."""
        publish(self.manifest, self.store, self.path, milestones)
        return None

    def end_block(self, block: int) -> None:
        """Remove the intermediate arrays of a block that is complete."""
        node, number = self.manifest.locate_block(block)
        assert node.strategy is not None
        for stage in range(len(node.strategy.intermediates)):
            array = self._intermediate(node, stage, self.store, self._intermediates)
            self.store.delete_many(keys_of_block(array, node.strategy.stages, stage, number))


def _combined(task: int, receipts: list[Receipt], marked: bool) -> Receipt:
    return Receipt(task, sum(receipt.nbytes for receipt in receipts), digest_of(receipts) if marked else "")


def can_sweep(source: SourceArray, metadata: ArrayMetadata) -> bool:
    """Return whether tasks may read a source in parts, into memory that they use again."""
    return source.read_into is not None and metadata.dtype.kind not in "OT"


def in_bands(source: SourceArray, box: Box, sweep: Sweep) -> Iterator[tuple[Box, AnyArray]]:
    """Yield the bands of a box with their elements, in memory that the next band uses again.

    What is read of a stored value of the source beyond a band stays for the next ones, so that no value is read twice.
    """
    assert source.read_into is not None
    axis, (low, high) = sweep.axis, (box[sweep.axis].start, box[sweep.axis].stop)
    lengths = [part.stop - part.start for part in box]
    lengths[axis] = min(sweep.held, high - low)
    dtype = source.dtype.dtype if isinstance(source.dtype, DataType) else np.dtype(source.dtype)
    held = np.empty(lengths, dtype, source.keep.get("order", "C"))

    def rows(start: int, stop: int) -> Box:
        return (*(slice(None),) * axis, slice(start, stop))

    first = read = low  # where the memory begins, and how far the source was read
    for start in range(low, high, sweep.band):
        stop = min(high, start + sweep.band)
        if read < stop:
            held[rows(0, read - start)] = held[rows(start - first, read - first)]
            first, until = start, min(high, -(-stop // sweep.stop) * sweep.stop)
            part = (*box[:axis], slice(read, until), *box[axis + 1 :])
            source.read_into(part, held[rows(read - first, until - first)])
            read = until
        yield (*box[:axis], slice(start, stop), *box[axis + 1 :]), held[rows(start - first, stop - first)]


def compare(values: AnyArray, target: Array, box: Box) -> None:
    """Raise `BaseZarrError` where a box of `target` does not hold `values`; each thread reads small pieces of it back."""

    def work(piece: Box) -> None:
        here = tuple(slice(part.start - low.start, part.stop - low.start) for part, low in zip(piece, box, strict=True))
        check_stored(values[here or ...], target, piece)

    for_each(work, list(pieces_of(box, target)))
