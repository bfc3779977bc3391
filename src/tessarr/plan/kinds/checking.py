"""Check a hierarchy: a task checks the stored values of a part of one array; documents are checked when the plan is finished.

Each task of an array lists its keys, and checks the chunks in its box. The first one reports all other keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from math import prod
from typing import Protocol, cast

from tessarr.core.stored.walk import walk
from tessarr.engine.jobs import Jobs
from tessarr.errors import ConflictError
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import Sizes, innermost, is_plain, longest_chunks
from tessarr.plan.kinds.digesting import reading_only
from tessarr.plan.manifest import Manifest, Place, PlannedNode
from tessarr.plan.markers import Milestones, Receipt, reading_result
from tessarr.plan.predict import COMPRESSED, ArrayCosts, Description, described_with
from tessarr.plan.publish import options_at
from tessarr.plan.strategies.strategy import direct
from tessarr.plan.tiling import tiled
from tessarr.stores.base import Store
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.path import join
from tessarr.stores.url import store_from
from tessarr.tools.check import Level, check_documents
from tessarr.tools.check.chunks import ArrayCheck, Keys, Listed, Share, add_examined, examined
from tessarr.tools.check.report import Report
from tessarr.tools.sources.base import Source
from tessarr.types import JSON, Progress

_CHUNKS, _TASKS = 100, 64
"""Chunks of a task at least, and tasks of an array at most: each lists all keys of the array."""
_JOBS = 4
"""Chunks that a task reads at once."""


def planned_check(path: str, metadata: ArrayMetadata, most: int = _TASKS) -> PlannedNode:
    """Plan the check of the stored values of an array, as `most` tasks or fewer."""
    axes = metadata.chunk_grid.axes(metadata.shape)
    rest = min(most, -(-prod(axis.nchunks for axis in axes) // _CHUNKS))
    lengths = []
    for axis, longest in zip(axes, longest_chunks(axes), strict=True):
        pieces = max(1, min(rest, axis.nchunks))
        rest //= pieces
        lengths.append(-(-axis.nchunks // pieces) * longest)
    return PlannedNode(path, path, metadata, direct(tiled(axes, lengths)), longest_chunks(axes))


LOADED = 4_000_000
"""Bytes of code and tables that a process has loaded once it has checked values, as measured."""


_READ = "at most that; a task holds several stored values where they are read more slowly than they are checked"


def described_checks(manifest: Manifest) -> Description:
    """Describe what checks read; they write nothing."""
    decoded = manifest.options["data"] == "decode"

    def costs(node: PlannedNode, metadata: ArrayMetadata, costs: ArrayCosts) -> ArrayCosts:
        if not decoded:
            return reading_only(
                replace(costs, peak_memory=LOADED, inexact="only keys, sizes and indexes of shards are read")
            )
        sizes, chain = Sizes.of(metadata, node.read, 1), innermost(metadata)
        stored, plain = sizes.itemsize * prod(sizes.smallest), is_plain(chain)
        held = stored if plain else stored + sizes.itemsize * prod(map(min, metadata.shape, chain.spec.shape))
        at_once = min(_JOBS, -(-prod(axis.nchunks for axis in sizes.axes) // max(1, costs.tasks)))
        return reading_only(replace(costs, peak_memory=at_once * held + LOADED, inexact=_READ if plain else COMPRESSED))

    return described_with(manifest, costs)


def state_of(store: Store, path: str) -> str:
    """Return a digest of the documents at and below a path, damaged ones too."""
    found = hashlib.sha256()
    for entry in sorted(walk(store, path), key=lambda entry: entry.path):
        for name, value in sorted(entry.values.items()):
            found.update(f"{entry.path}\0{name}\0{len(bytes(value))}\0".encode() + bytes(value))
    return found.hexdigest()


class Checking:
    """The work of a plan that checks."""

    source: Source | None = None
    """What is checked may change."""

    def __init__(
        self, manifest: Manifest, store: Store, path: str, pool: Jobs | None = None, keys: Keys | None = None
    ) -> None:
        """Set up the work. `pool` reads chunks, and may be shared; `keys` lists a prefix, instead of the store."""
        self._manifest = manifest
        self._store, self._path = store, path
        self._pool, self._keys = pool, keys
        self._level: Level | None = cast("Level | None", manifest.options["data"])

    def run(self, task: int, *, marked: bool = True) -> Receipt:
        """Check the stored values in a box."""
        node, number = self._manifest.locate(task)
        assert node.tiling is not None
        assert isinstance(node.metadata, ArrayMetadata)
        box = node.tiling.box(number)
        axes = node.metadata.chunk_grid.axes(node.metadata.shape)
        chunks = (
            range(axis.find(part.start), axis.find(part.stop - 1) + 1) for axis, part in zip(axes, box, strict=True)
        )
        share = Share(tuple(chunks), first=number == 0) if node.tasks > 1 else None
        done = self._examined(node.path, node.metadata, share)
        return Receipt(task, int(str(done["nbytes"])), "", done)

    def _examined(self, path: str, metadata: ArrayMetadata, share: Share | None) -> dict[str, JSON]:
        assert self._level is not None
        with nullcontext(self._pool) if self._pool is not None else Jobs(_JOBS) as pool:
            return examined(ArrayCheck(self._store, path, metadata, self._level, pool, self._keys, share))

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSON:
        """Check the documents, and add what the tasks found."""
        conventions = bool(self._manifest.options["conventions"])
        report, _ = check_documents(self._store, self._path, self._level, conventions=conventions)
        self.add(report, results)
        return report.to_json()

    def add(self, report: Report, results: Mapping[int, JSON]) -> None:
        """Add what the tasks found to a report; arrays without chunks are checked here."""
        first = 0
        for node in self._manifest.nodes:
            if isinstance(node.metadata, ArrayMetadata) and not node.tasks:
                add_examined(report, self._examined(node.path, node.metadata, None))
            for task in range(first, first + node.tasks):
                with reading_result(task, done := results[task]):
                    add_examined(report, cast("dict[str, JSON]", done))
            first += node.tasks


def open_check(
    manifest: Manifest, _target: object, storage_options: Mapping[str, object] | None, _folder: object
) -> Checking:
    """Open the place of a check. Raises `ConflictError` when its documents have changed since the plan was made."""
    place: Place = manifest.source
    store, above = store_from(place.url, mode="r", storage_options=options_at(place.url, storage_options))
    path = join(above, place.path)
    if (found := state_of(store, path)) != manifest.identity:
        raise ConflictError(
            "the source has changed since the plan was made",
            store=place.url, expected=manifest.identity, got=found, hint="Make the plan again",
        )  # fmt: skip
    return Checking(manifest, store, path)


class _Journal(Protocol):
    """What is recorded of a check, so that it can be resumed."""

    def finished(self, path: str) -> dict[str, JSON] | None: ...

    def record(self, path: str, done: dict[str, JSON]) -> None: ...


def check_values(
    store: Store, path: str, arrays: Mapping[str, ArrayMetadata], report: Report, *, jobs: int, journal: _Journal,
    progress: Progress | None,
) -> None:  # fmt: skip
    """Check the stored values of arrays in this process: a task of a plan for each, `jobs` chunks at once. Adds to `report`."""
    nodes = tuple(planned_check(at, metadata, 1) for at, metadata in arrays.items())
    place = Place("", path)
    manifest = Manifest("", "check", place, "zarr", "", None, None, False, False, nodes, {"data": report.data})
    keys = Listed(store).below if isinstance(store, MemoryStore) else None
    results: dict[int, JSON] = {}
    with Jobs(jobs) as pool:
        work = Checking(manifest, store, path, pool, keys)

        def carried_out(task: int) -> tuple[str, JSON, bool]:
            at = manifest.locate(task)[0].path
            known = journal.finished(at)
            return at, work.run(task).result if known is None else known, known is None

        for task, (at, done, is_new) in enumerate(pool.map(carried_out, range(manifest.tasks))):
            if progress is not None:
                progress(task, manifest.tasks, f"/{at} values")
            if is_new:
                journal.record(at, cast("dict[str, JSON]", done))
            results[task] = done
        work.add(report, results)
