"""Make plans: resolve what is read and written, and choose the boxes of the tasks."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from tessarr.engine.processors import processors
from tessarr.grids.guess import parse_nbytes
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import Sizes, choose_box
from tessarr.plan.manifest import Manifest, PlannedNode
from tessarr.plan.plan import Plan
from tessarr.plan.publish import check_apart, destination
from tessarr.plan.sources import identity, place_of
from tessarr.plan.task import Worker
from tessarr.stores.url import StoreLike
from tessarr.tools.copy_tree import Choices, ChunksChoice, Planned, plan_tree
from tessarr.tools.sources import open_source
from tessarr.tools.sources.base import SourceArray

MEMORY = "512MiB"
"""What a task may hold unless the user says otherwise."""


def rechunk(
    source: StoreLike,
    dest: StoreLike,
    *,
    path: str = "",
    chunks: ChunksChoice = "keep",
    shards: ChunksChoice = "keep",
    memory: int | str = MEMORY,
    overwrite: bool = False,
    verify: bool = True,
    storage_options: Mapping[str, object] | None = None,
    source_storage_options: Mapping[str, object] | None = None,
) -> Plan:
    """Plan to rewrite an array, or every array of a hierarchy, with other chunks or shards; all else is kept.

    `source`, `dest`: what `tessarr.open` accepts; `path`: the node in `dest`. `memory`: the most bytes that a task may hold,
    its threads included, as a number or "2GB". `verify`: each task reads back what it wrote. Nothing is written yet.

    Raises `BaseZarrError` when something is at `dest` and not `overwrite`, or where one stored chunk needs more memory;
    `UnsupportedOperationError` where the source is, holds, or is within the target.
    """
    choices = Choices(zarr_format=None, chunks=chunks, shards=shards)
    return _plan(
        "rechunk", source, dest, path, choices, memory, overwrite, verify, storage_options, source_storage_options
    )


def _plan(
    operation: str, source: StoreLike, dest: StoreLike, path: str, choices: Choices, memory: int | str, overwrite: bool,
    verify: bool, storage_options: Mapping[str, object] | None, source_storage_options: Mapping[str, object] | None,
) -> Plan:  # fmt: skip
    number = secrets.token_hex(4)
    found = destination(dest, path, number, overwrite=overwrite, storage_options=storage_options)
    opened = open_source(source, None, source_storage_options)
    check_apart(getattr(opened, "node", None), found)
    most = parse_nbytes(memory) if isinstance(memory, str) else memory
    nodes = tuple(_node(planned, most) for planned in plan_tree(opened, choices).nodes)
    place, kind = place_of(source, opened)
    manifest = Manifest(
        number,
        operation,
        place,
        kind,
        identity(place, kind, opened),
        found.target,
        found.work,
        overwrite,
        verify,
        nodes,
    )
    return Plan(manifest, Worker(manifest, opened, found.store, found.path))


def _node(planned: Planned, memory: int) -> PlannedNode:
    metadata, source = planned.metadata, planned.source
    if not isinstance(metadata, ArrayMetadata) or not isinstance(source, SourceArray):
        return PlannedNode(planned.path, source.path, metadata, None)
    read = source.chunks or (1,) * len(source.shape)
    sizes = Sizes.of(metadata, read, processors())
    return PlannedNode(planned.path, source.path, metadata, choose_box(sizes, memory), read)
