"""Copy stored values as they are: a task copies the encoded chunks, or shards, in a box. Nothing is decoded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.engine.jobs import Jobs
from tessarr.errors import BaseZarrError, UnsupportedOperationError
from tessarr.indexing.boxes import Box
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import Sizes, choose_box, innermost, longest_chunks
from tessarr.plan.manifest import Manifest, PlannedNode
from tessarr.plan.markers import Milestones, Receipt
from tessarr.plan.publish import begin, publish
from tessarr.plan.sources import check_unchanged
from tessarr.plan.strategies.strategy import direct
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.path import join, prefix_of
from tessarr.stores.protocols import Remote
from tessarr.tools.sources.base import Source
from tessarr.tools.sources.zarr import ZarrSource
from tessarr.types import JSON

if TYPE_CHECKING:
    from tessarr.plan.predict import ArrayCosts, Description

_UNBOUNDED = 1 << 62
_REQUESTS = 8
"""Values in flight to a remote store within a task."""
LOADED = 700_000
"""Bytes of code and buffers that a process has loaded once it has copied a value, as measured."""


def planned_copies(source: Source) -> Iterator[PlannedNode]:
    """Plan a copy of every node. Raises `UnsupportedOperationError` for what is not stored as Zarr."""
    top = getattr(source, "node", None)
    if not isinstance(top, Array | Group):
        raise UnsupportedOperationError(
            "only Zarr data is copied as it is stored", got=source.kind, hint="Plan a conversion"
        )
    yield _planned("", top)
    if isinstance(top, Group):
        for path, node in sorted(top.members(max_depth=None)):
            yield _planned(path, node)


def _planned(path: str, node: Array | Group) -> PlannedNode:
    metadata = node._metadata
    if not isinstance(metadata, ArrayMetadata):
        return PlannedNode(path, path, replace(metadata, consolidated_metadata=None), None)
    if metadata.storage_transformers:
        raise UnsupportedOperationError(
            "stored values behind storage transformers are not copied", path=node.name, hint="Plan a conversion"
        )
    read = longest_chunks(metadata.chunk_grid.axes(metadata.shape))
    return PlannedNode(path, path, metadata, direct(choose_box(Sizes.of(metadata, read, 1), _UNBOUNDED)), read)


def is_consolidated(source: Source) -> bool:
    """Return whether a group was opened with consolidated metadata."""
    top = getattr(source, "node", None)
    return isinstance(top, Group) and top._metadata.consolidated_metadata is not None


def described_copies(manifest: Manifest) -> Description:
    """Describe a copy: a task holds each stored value in flight, and what is read back to be compared with it."""
    from tessarr.plan.predict import COMPRESSED, described_with

    places = (place.url for place in (manifest.source, manifest.work) if place is not None)
    remote = any("://" in url and not url.startswith("file://") for url in places)

    def held(node: PlannedNode, metadata: ArrayMetadata, costs: ArrayCosts) -> ArrayCosts:
        sizes = Sizes.of(metadata, node.read, 1)
        at_once = min(_REQUESTS, -(-costs.objects // max(1, costs.tasks))) if remote else 1
        peak = at_once * (1 + manifest.verify) * sizes.itemsize * prod(sizes.smallest) + LOADED
        return replace(costs, peak_memory=peak, inexact=COMPRESSED if innermost(metadata).encoded_size is None else "")

    return described_with(manifest, held)


class _Copied(NamedTuple):
    nbytes: int
    digest: bytes


class Copying:
    """The work of a plan that copies."""

    def __init__(self, manifest: Manifest, source: Source, store: Store, path: str) -> None:
        node = getattr(source, "node", None)
        assert isinstance(node, Array | Group)
        if isinstance(source, ZarrSource):
            source.watch()
        self._manifest, self.source = manifest, source
        self._from, self._from_path = node._store, node._path
        self._to, self._to_path = store, path
        self._jobs = _REQUESTS if isinstance(node._store, Remote) or isinstance(store, Remote) else 1

    def begin(self, *, resumed: bool) -> None:
        """Look at the target, and claim the place of work. May be repeated."""
        check_unchanged(self.source)
        begin(self._manifest, self._to, self._to_path, resumed=resumed)

    def run(self, task: int, *, marked: bool = True) -> Receipt:
        """Copy the stored values of a box. Raises `BaseZarrError` where those read back differ."""
        node, number = self._manifest.locate(task)
        assert node.tiling is not None
        assert isinstance(node.metadata, ArrayMetadata)
        names = _names(node.metadata, node.tiling.box(number))
        here, there = (
            prefix_of(join(self._from_path, node.source)),
            prefix_of(join(self._to_path, node.path)),
        )
        nbytes, digest = 0, hashlib.sha256()
        with Jobs(self._jobs) as pool:
            for copied in pool.map(lambda name: self._copy(here + name, there + name, marked), names):
                nbytes += copied.nbytes
                digest.update(copied.digest)
        return Receipt(task, nbytes, digest.hexdigest() if marked else "")

    def _copy(self, key: str, target: str, marked: bool) -> _Copied:
        value = self._from.get(key)
        if value is None:
            self._to.delete(target)  # what a stopped plan left there
            return _Copied(0, b"")
        self._to.set(target, value)
        data = byte_view(value)
        if self._manifest.verify:
            back = self._to.get(target)
            if back is None or byte_view(back) != data:
                raise BaseZarrError("the value read back differs from the source", store=self._to.url, key=target)
        return _Copied(data.nbytes, hashlib.sha256(data).digest() if marked else b"")

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSON:
        """Publish the copy."""
        publish(self._manifest, self._to, self._to_path, milestones)
        return None


def _names(metadata: ArrayMetadata, box: Box) -> Iterator[str]:
    """Yield the keys, below the array, of the stored chunks in a box of whole chunks."""
    axes = metadata.chunk_grid.axes(metadata.shape)
    spans = [range(axis.find(part.start), axis.find(part.stop - 1) + 1) for axis, part in zip(axes, box, strict=True)]
    return map(metadata.chunk_key_encoding.encode, product(*spans))
