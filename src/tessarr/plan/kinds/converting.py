"""Plan the boxes in which arrays are converted or rewritten, and carry a conversion out at once in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy as copied
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from tessarr.codecs.bytes_to_bytes.blosc import BloscCodec
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.dtypes.base import DataType
from tessarr.engine.choose import may_be_native
from tessarr.engine.jobs import Jobs
from tessarr.engine.processors import processors
from tessarr.errors import UnsupportedOperationError
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import FOR_FLIGHT, FOR_THREADS, WITH_OVERHEAD, InFlight, Sizes, choose_box, with_codecs
from tessarr.plan.manifest import Manifest, Place, PlannedNode
from tessarr.plan.strategies.cast import cast, check_cast
from tessarr.plan.strategies.regroup import can_regroup
from tessarr.plan.strategies.strategy import Name, choose, direct, regrouping
from tessarr.plan.task import Worker, can_sweep
from tessarr.stores.local.store import LocalStore
from tessarr.stores.url import StoreLike
from tessarr.tools.copy_tree import Choices, Planned, TreePlan, plan_tree
from tessarr.tools.sources.base import Source, SourceArray, SourceGroup
from tessarr.tools.staging import Staging, local_path
from tessarr.types import AnyDType, Progress, Shape

AT_ONCE = 64 << 20
"""The most bytes of elements that tasks in one process hold together; one stored chunk of the target may be larger."""


class How(NamedTuple):
    """What a user says about how arrays are moved."""

    memory: int
    strategy: Name = "auto"
    scratch: str | None = None
    dtype: npt.DTypeLike | None = None
    local: bool = False
    """Whether the target is a local directory."""
    verify: bool = False


def is_local(dest: StoreLike) -> bool:
    return local_path(dest) is not None or isinstance(dest, LocalStore)


def planned_nodes(source: Source, choices: Choices, how: How, notices: list[str]) -> Iterator[PlannedNode]:
    """Plan how every node is moved; what is not kept is added to `notices`."""
    given, itemsizes = source, {node.path: node.itemsize for node in source.nodes if isinstance(node, SourceArray)}
    if how.dtype is not None:
        given = copied(source)
        given.nodes = [_retyped(node, np.dtype(how.dtype)) for node in source.nodes]
    top = getattr(source, "node", None)
    tree = plan_tree(given, choices)
    notices += tree.notices
    return (_node(planned, top, how, itemsizes) for planned in tree.nodes)


def _retyped(node: SourceArray | SourceGroup, dtype: AnyDType) -> SourceArray | SourceGroup:
    if not isinstance(node, SourceArray):
        return node
    kept = node.dtype.dtype if isinstance(node.dtype, DataType) else np.dtype(node.dtype)
    check_cast(kept, dtype)
    fill = node.fill_value
    compressors = node.keep.get("compressors")
    if isinstance(compressors, list | tuple):
        chosen_again = [replace(codec, typesize=None) if _shuffles(codec, kept) else codec for codec in compressors]
        node = replace(node, keep={**node.keep, "compressors": chosen_again})
    return replace(node, dtype=dtype, fill_value=cast(fill, dtype) if isinstance(fill, np.ndarray) else fill)


def _shuffles(codec: object, dtype: AnyDType) -> TypeGuard[BloscCodec]:
    """Return whether a codec shuffles elements of `dtype`."""
    return isinstance(codec, BloscCodec) and codec.typesize == dtype.itemsize


def _node(planned: Planned, top: object, how: How, itemsizes: Mapping[str, int]) -> PlannedNode:
    metadata, source = planned.metadata, planned.source
    if not isinstance(metadata, ArrayMetadata) or not isinstance(source, SourceArray):
        return PlannedNode(planned.path, source.path, metadata, None)
    read = _read_shape(source)
    native = how.local and may_be_native()  # which writes inner chunks one by one
    sizes, itemsize = Sizes.of(metadata, read, 1, streamed=native), itemsizes[source.path]
    if how.dtype is not None and itemsize != sizes.itemsize:
        sizes = replace(sizes, converted=itemsize)
    found = top[source.path] if isinstance(top, Group) and source.path else top
    shards = (found.shards if isinstance(found, Array) else None) or ()
    if can_sweep(source, metadata):
        sizes = replace(sizes, stops=shards or read)
    some = how.memory // FOR_FLIGHT
    sizes = with_codecs(sizes, metadata, found._metadata if isinstance(found, Array) else None)
    flight = InFlight(0 if native and _reads_by_itself(found) else some, 0 if how.local else some)
    sizes = replace(sizes, verified=how.verify, in_flight=flight)
    sizes = replace(sizes, threads=max(1, min(processors(), how.memory // max(1, FOR_THREADS * sizes.per_thread))))
    memory = how.memory - sizes.overhead if how.memory > WITH_OVERHEAD * sizes.overhead else how.memory
    if how.strategy in ("auto", "regroup") and isinstance(found, Array) and can_regroup(found._metadata, metadata):
        why = "the chunks and their codecs stay, so that nothing is decoded"
        strategy = regrouping(sizes, memory, why, streamed=how.local)
    elif how.strategy == "regroup":
        raise UnsupportedOperationError(
            "encoded chunks are moved only where chunks, codecs, data type and fill value stay",
            path=f"/{planned.path}",
            hint="Leave the strategy to the plan",
        )
    else:
        strategy = choose(sizes, memory, how.strategy, scratch=how.scratch is not None)
    why = f"{strategy.why}; {source.note}" if strategy.why and source.note else strategy.why or source.note
    strategy = replace(strategy, threads=sizes.threads, in_flight=max(flight), why=why)
    strategy = replace(strategy, memory=strategy.memory or strategy.peak(sizes) + sizes.overhead)
    return PlannedNode(planned.path, source.path, metadata, strategy, read, shards, sizes.converted)


def _reads_by_itself(found: object) -> bool:
    """Whether each thread reads what it decodes."""
    return isinstance(found, Array) and found._engine.name == "native" and isinstance(found._bound.store, LocalStore)


def carry_out(
    tree: TreePlan, source: Source, staging: Staging, *, verify: bool, jobs: int, progress: Progress | None
) -> None:
    """Write every node: the tasks of a conversion, `jobs` at once, in this process.

    Documents come first: the place is not the final one, or free. The first error ends it. Raises `BaseZarrError` where values
    read back differ.
    """
    nodes = tuple(_in_one_process(planned, AT_ONCE // jobs) for planned in tree.nodes)
    place = Place("", staging.path)
    manifest = Manifest("", "convert", Place(""), source.kind, "", place, place, False, verify, nodes)
    staging.create({node.path: node.metadata for node in nodes})
    worker, done, total = Worker(manifest, source, staging.store, staging.path), 0, tree.nbytes
    sizes = {planned.path: planned.source.itemsize for planned in tree.nodes if isinstance(planned.source, SourceArray)}

    def work(task: int) -> tuple[int, str]:
        node, number = manifest.locate(task)
        assert node.tiling is not None
        worker.run(task, marked=False)
        return prod(part.stop - part.start for part in node.tiling.box(number)) * sizes[node.path], f"/{node.path}"

    with Jobs(jobs) as pool:
        for nbytes, name in pool.map(work, range(manifest.tasks)):
            done += nbytes
            if progress is not None:
                progress(done, total, name)
    if progress is not None:
        progress(total, total, "done")


def _in_one_process(planned: Planned, most: int) -> PlannedNode:
    """Plan boxes of at most `most` bytes of elements, or of one stored chunk; other tasks hold theirs beside them."""
    metadata, source = planned.metadata, planned.source
    if not isinstance(metadata, ArrayMetadata) or not isinstance(source, SourceArray):
        return PlannedNode(planned.path, source.path, metadata, None)
    read = _read_shape(source)
    sizes = Sizes.of(metadata, read, 0)
    return PlannedNode(planned.path, source.path, metadata, direct(choose_box(sizes, max(most, sizes.least))), read)


def _read_shape(source: SourceArray) -> Shape:
    """Return the parts that the source reads as one; single elements where any part can be read."""
    return source.chunks or source.requested or (1,) * len(source.shape)
