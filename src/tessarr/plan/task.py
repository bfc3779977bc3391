"""Carry out one task of a plan: read a box of the source, write the stored values of the target that it covers.

A task writes whole stored values, reads nothing that any task of the plan writes, and writes the same bytes whenever it runs.
So it may run anywhere, twice, or again after it was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from threading import Lock
from typing import Protocol

from tessarr.core.array import Array
from tessarr.indexing.boxes import Box
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.manifest import Manifest, PlannedNode
from tessarr.plan.markers import Milestones, Receipt
from tessarr.plan.publish import publish
from tessarr.plan.strategies.intermediate import keys_of_block, open_intermediate
from tessarr.stores.base import Store
from tessarr.stores.path import join, prefix_of
from tessarr.tools.digest import block_digest
from tessarr.tools.sources.base import Source, SourceArray
from tessarr.tools.transfer import check_stored, values_in
from tessarr.types import JSON, AnyArray


class Work(Protocol):
    """What a plan does, with its places opened. Threads may share it."""

    def run(self, task: int) -> Receipt:
        """Carry out a task."""
        ...

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSON:
        """Publish what the tasks wrote, or combine what they found, by task. Returns the result of the plan.

        May be stopped anywhere, and repeated.
        """
        ...


class Worker:
    """The work of a plan whose tasks write boxes of elements."""

    def __init__(self, manifest: Manifest, source: Source, store: Store, path: str) -> None:
        self.manifest = manifest
        self.store, self.path = store, path
        self._intermediates = join(path, manifest.intermediates)
        self._source = source
        self._arrays = {node.path: node for node in source.nodes if isinstance(node, SourceArray)}
        self._written: dict[tuple[str, int], Array] = {}
        self._lock = Lock()

    def run(self, task: int) -> Receipt:
        """Carry out a task. Raises `BaseZarrError` where the values read back differ from those written."""
        node, number = self.manifest.locate(task)
        assert node.strategy is not None
        _, stage, box = node.strategy.stages.locate(number)
        values = self._read(node.source, box) if stage == 0 else values_in(self._written_by(node, stage - 1), box)
        target = self._written_by(node, stage)
        target[box or ...] = values
        if stage < len(node.strategy.intermediates):
            return Receipt(task, int(values.nbytes), "")
        if self.manifest.verify:
            check_stored(values, target, box)
        return Receipt(task, int(values.nbytes), block_digest(values).hex())

    def _read(self, path: str, box: Box) -> AnyArray:
        with nullcontext() if self._source.parallel else self._lock:
            return self._arrays[path].read(box)

    def _written_by(self, node: PlannedNode, stage: int) -> Array:
        """Return the array that a stage writes: an intermediate one, or the target."""
        assert node.strategy is not None
        assert isinstance(node.metadata, ArrayMetadata)
        with self._lock:
            array = self._written.get((node.path, stage))
            if array is None:
                between = node.strategy.intermediates
                if stage < len(between):
                    path = join(self._intermediates, join(node.path, str(stage)))
                    array = open_intermediate(self.store, path, node.metadata, between[stage])
                else:
                    path = join(self.path, node.path)
                    array = Array._opened(self.store, path, node.metadata, read_only=False, config=None)
                self._written[node.path, stage] = array
        return array

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSON:
        """Publish the result."""
        if any(node.strategy is not None and node.strategy.intermediates for node in self.manifest.nodes):
            self.store.delete_prefix(prefix_of(self._intermediates))
        publish(self.manifest, self.store, self.path, milestones)
        return None

    def end_block(self, block: int) -> None:
        """Remove the intermediate arrays of a block that is complete."""
        node, number = self.manifest.locate_block(block)
        assert node.strategy is not None
        for stage in range(len(node.strategy.intermediates)):
            array = self._written_by(node, stage)
            self.store.delete_many(keys_of_block(array, node.strategy.stages, stage, number))
