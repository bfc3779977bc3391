"""Carry out one task of a plan: read a box of the source, write the stored values of the target that it covers.

A task writes whole stored values, reads nothing that any task of the plan writes, and writes the same bytes whenever it runs.
So it may run anywhere, twice, or again after it was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Protocol

from tessarr.core.array import Array
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.manifest import Manifest
from tessarr.plan.markers import Milestones, Receipt
from tessarr.plan.publish import publish
from tessarr.stores.base import Store
from tessarr.stores.path import join
from tessarr.tools.digest import block_digest
from tessarr.tools.sources.base import Source, SourceArray
from tessarr.tools.transfer import check_stored
from tessarr.types import JSON


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
        self._source = source
        self._arrays = {node.path: node for node in source.nodes if isinstance(node, SourceArray)}
        self._targets: dict[str, Array] = {}
        self._lock = Lock()

    def run(self, task: int) -> Receipt:
        """Carry out a task. Raises `BaseZarrError` where the values read back differ from those written."""
        node, number = self.manifest.locate(task)
        assert node.tiling is not None
        assert isinstance(node.metadata, ArrayMetadata)
        box = node.tiling.box(number)
        source = self._arrays[node.source]
        if self._source.parallel:
            values = source.read(box)
        else:
            with self._lock:
                values = source.read(box)
        target = self._target(node.path, node.metadata)
        target[box or ...] = values
        if self.manifest.verify:
            check_stored(values, target, box)
        return Receipt(task, int(values.nbytes), block_digest(values).hex())

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSON:
        """Publish the result."""
        publish(self.manifest, self.store, self.path, milestones)
        return None

    def _target(self, path: str, metadata: ArrayMetadata) -> Array:
        with self._lock:
            array = self._targets.get(path)
            if array is None:
                array = Array._opened(self.store, join(self.path, path), metadata, read_only=False, config=None)
                self._targets[path] = array
        return array
