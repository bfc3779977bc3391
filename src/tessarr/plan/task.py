"""Carry out one task of a plan: read a box of the source, write the stored values of the target that it covers.

A task writes whole stored values, reads nothing that any task of the plan writes, and writes the same bytes whenever it runs.
So it may run anywhere, twice, or again after it was killed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

from tessarr.core.array import Array
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.manifest import Manifest
from tessarr.plan.sources import reopened
from tessarr.stores.base import Store
from tessarr.stores.path import join
from tessarr.stores.url import store_from
from tessarr.tools.digest import block_digest
from tessarr.tools.sources.base import Source, SourceArray
from tessarr.tools.transfer import check_stored


class Receipt(NamedTuple):
    """What a task has done."""

    task: int
    nbytes: int
    """Bytes of the elements that it moved."""
    digest: str
    """SHA-256 of these elements."""


class Worker:
    """The opened source and target of a plan, for its tasks. Threads may share a worker."""

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

    def _target(self, path: str, metadata: ArrayMetadata) -> Array:
        with self._lock:
            array = self._targets.get(path)
            if array is None:
                array = Array._opened(self.store, join(self.path, path), metadata, read_only=False, config=None)
                self._targets[path] = array
        return array


def open_worker(manifest: Manifest, storage_options: Mapping[str, object] | None = None) -> Worker:
    """Open the source and target of a plan. Raises `ConflictError` when the source has changed since the plan was made."""
    source = reopened(manifest, storage_options)
    store, path = store_from(manifest.work.url, mode="a", storage_options=storage_options)
    return Worker(manifest, source, store, join(path, manifest.work.path))


@lru_cache(maxsize=4)
def _worker_of(document: bytes) -> Worker:
    return open_worker(Manifest.loads(document, where="plan.json"))


def run_task(document: bytes, task: int) -> Receipt:
    """Carry out a task of the plan in `document`, in any process. The opened places are kept for further tasks."""
    return _worker_of(document).run(task)


def digest_of(receipts: list[Receipt]) -> str:
    """Combine the digests of tasks, in the order of the tasks."""
    return hashlib.sha256(b"".join(bytes.fromhex(receipt.digest) for receipt in sorted(receipts))).hexdigest()
