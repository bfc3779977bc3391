"""Make plans: resolve what is read and written, and choose the boxes of the tasks."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.open import open as open_node
from tessarr.engine.processors import processors
from tessarr.grids.guess import parse_nbytes
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import Sizes
from tessarr.plan.kinds.checking import Checking, planned_check, state_of
from tessarr.plan.kinds.copying import Copying, is_consolidated, planned_copies
from tessarr.plan.kinds.digesting import Digesting, planned_digests
from tessarr.plan.manifest import Manifest, Place, PlannedNode
from tessarr.plan.plan import Plan
from tessarr.plan.publish import check_apart, destination, reopenable_url
from tessarr.plan.sources import identity, place_of
from tessarr.plan.strategies.strategy import Name, choose
from tessarr.plan.task import Work, Worker
from tessarr.stores.base import Store
from tessarr.stores.url import StoreLike
from tessarr.tools.check import Level, check_documents
from tessarr.tools.convert import format_of
from tessarr.tools.copy_tree import Choices, ChunksChoice, Planned, plan_tree
from tessarr.tools.sources import open_source
from tessarr.tools.sources.base import Source, SourceArray
from tessarr.tools.sources.zarr import ZarrSource

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
    strategy: Name = "auto",
    overwrite: bool = False,
    verify: bool = True,
    storage_options: Mapping[str, object] | None = None,
    source_storage_options: Mapping[str, object] | None = None,
) -> Plan:
    """Plan to rewrite an array, or every array of a hierarchy, with other chunks or shards; all else is kept.

    `source`, `dest`: what `tessarr.open` accepts; `path`: the node in `dest`. `memory`: the most bytes that a task may hold,
    its threads included, as a number or "2GB". `strategy`: "direct" reads the source for each box of the target, "staged"
    stores an intermediate array beside the target; "auto" is what costs less. `verify`: each task reads back what it wrote.
    Nothing is written yet.

    Raises `BaseZarrError` when something is at `dest` and not `overwrite`, or where one stored chunk needs more memory;
    `UnsupportedOperationError` where the source is, holds, or is within the target.
    """
    most = parse_nbytes(memory) if isinstance(memory, str) else memory

    choices = Choices(zarr_format=None, chunks=chunks, shards=shards)
    return _writing(
        "rechunk", Worker, lambda opened: _nodes(opened, choices, most, strategy), source, dest, path,
        overwrite=overwrite, verify=verify, storage_options=storage_options, source_storage_options=source_storage_options,
    )  # fmt: skip


def convert(
    source: StoreLike, dest: StoreLike, *, path: str = "", kind: str | None = None, zarr_format: int | str = 3,
    chunks: ChunksChoice = "keep", shards: ChunksChoice = "keep", filters: CodecsLike = "keep",
    compressors: CodecsLike = "keep", codecs: Sequence[CodecLike] | None = None, include: Sequence[str] = (),
    exclude: Sequence[str] = (), rename: Mapping[str, str] | None = None, memory: int | str = MEMORY,
    overwrite: bool = False, verify: bool = True, consolidate: bool = False,
    storage_options: Mapping[str, object] | None = None, source_storage_options: Mapping[str, object] | None = None,
) -> Plan:  # fmt: skip
    """Plan to convert a file or a Zarr hierarchy to Zarr; the arguments of `tessarr.tools.convert.convert` mean the same here.

    `memory`: the most bytes that a task may hold. Workers read the file by the path that is given here. Nothing is written yet.

    Raises the errors of `rechunk`, and those of planning a conversion.
    """
    most = parse_nbytes(memory) if isinstance(memory, str) else memory

    def nodes(opened: Source) -> Iterator[PlannedNode]:
        choices = Choices(
            zarr_format=format_of(opened, zarr_format), chunks=chunks, shards=shards, filters=filters,
            compressors=compressors, codecs=codecs, include=include, exclude=exclude, rename=rename or {},
        )  # fmt: skip
        return _nodes(opened, choices, most)

    return _writing(
        "convert", Worker, nodes, source, dest, path, kind=kind, overwrite=overwrite, verify=verify, consolidate=consolidate,
        storage_options=storage_options, source_storage_options=source_storage_options,
    )  # fmt: skip


def copy(
    source: StoreLike,
    dest: StoreLike,
    *,
    path: str = "",
    overwrite: bool = False,
    verify: bool = True,
    storage_options: Mapping[str, object] | None = None,
    source_storage_options: Mapping[str, object] | None = None,
) -> Plan:
    """Plan to copy an array or a hierarchy of Zarr, of any version: its stored chunks or shards as they are, documents last.

    Arguments as for `rechunk`. A task copies about 64 MB of elements, one stored value at a time (eight where a store is
    remote). `verify`: each value is read back and compared. Consolidated metadata are written again.

    Raises `BaseZarrError` when something is at `dest` and not `overwrite`; `UnsupportedOperationError` where the source is,
    holds, or is within the target, is not Zarr, or has storage transformers.

    >>> import tessarr, tessarr.plan
    >>> source = tessarr.array([[1, 2], [3, 4]], chunks=(1, 2), store={})
    >>> target = tessarr.storage.MemoryStore()
    >>> tessarr.plan.copy(source, target, path="a").run().finished, tessarr.open_array(target, path="a")[1].tolist()
    (True, [3, 4])
    """
    return _writing(
        "copy", Copying, planned_copies, source, dest, path, overwrite=overwrite, verify=verify,
        storage_options=storage_options, source_storage_options=source_storage_options,
    )  # fmt: skip


def digest(
    source: StoreLike | Array | Group,
    *,
    path: str = "",
    attributes: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> Plan:
    """Plan the digests of an array, or of a group and everything below it: those of `tessarr.tools.digest.digest`.

    `source`: an opened node, or a place, and the `path` of the node in it. A task digests one block, of at most 4 Mi elements.
    `Plan.result` returns them. Raises the errors of `tessarr.open`.

    >>> import tessarr, tessarr.plan
    >>> array = tessarr.array([1, 2], store={})
    >>> plan = tessarr.plan.digest(array)
    >>> plan.run().finished, plan.result() == tessarr.tools.digest.digest(array)
    (True, True)
    """
    if isinstance(source, Array | Group):
        node: Array | Group = source
    else:
        node = open_node(source, path=path or None, mode="r", storage_options=storage_options)
    opened = ZarrSource(node)
    place, kind = place_of(node, opened)
    manifest = Manifest(
        secrets.token_hex(4), "digest", place, kind, identity(place, kind, opened), None, None, False, False,
        tuple(planned_digests(node)), {"attributes": attributes},
    )  # fmt: skip
    return Plan(manifest, Digesting(manifest, node))


def check(
    store: StoreLike | Array | Group,
    *,
    path: str = "",
    data: Level | None = None,
    conventions: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> Plan:
    """Plan the check of a hierarchy: that of `tessarr.tools.check.check`, whose arguments mean the same here.

    A task checks the stored values of a part of an array; without `data` there is none. Documents are checked when the plan is
    made, and when it is finished. `Plan.result` returns the report.

    Raises `NodeNotFoundError` when there is nothing at `path`; problems of nodes are only reported.

    >>> import tessarr, tessarr.plan
    >>> plan = tessarr.plan.check(tessarr.array([1, 2], store={}), data="decode")
    >>> plan.run().finished, plan.result().findings
    (True, [])
    """
    where, path, _ = locate(store, path, "r", storage_options)
    _, arrays = check_documents(where, path, data, conventions=False)
    nodes = (planned_check(at, metadata) for at, metadata in arrays.items() if data is not None)
    manifest = Manifest(
        secrets.token_hex(4), "check", Place(reopenable_url(where), path), "zarr", state_of(where, path), None, None, False,
        False, tuple(nodes), {"data": data, "conventions": conventions},
    )  # fmt: skip
    return Plan(manifest, Checking(manifest, where, path))


def _writing(
    operation: str, work: Callable[[Manifest, Source, Store, str], Work], nodes: Callable[[Source], Iterable[PlannedNode]],
    source: StoreLike, dest: StoreLike, path: str, *, kind: str | None = None, overwrite: bool, verify: bool,
    consolidate: bool = False, storage_options: Mapping[str, object] | None,
    source_storage_options: Mapping[str, object] | None,
) -> Plan:  # fmt: skip
    """Make the plan of an operation that writes `nodes` of the source to `dest`."""
    number = secrets.token_hex(4)
    found = destination(dest, path, number, overwrite=overwrite, storage_options=storage_options)
    opened = open_source(source, kind, source_storage_options)
    check_apart(getattr(opened, "node", None), found)
    place, known = place_of(source, opened)
    manifest = Manifest(
        number, operation, place, known, identity(place, known, opened), found.target, found.work, overwrite, verify,
        tuple(nodes(opened)), {"consolidate": consolidate or (operation == "copy" and is_consolidated(opened))},
    )  # fmt: skip
    return Plan(manifest, work(manifest, opened, found.store, found.path))


def _nodes(source: Source, choices: Choices, memory: int, strategy: Name = "auto") -> Iterator[PlannedNode]:
    return (_node(planned, memory, strategy) for planned in plan_tree(source, choices).nodes)


def _node(planned: Planned, memory: int, strategy: Name) -> PlannedNode:
    metadata, source = planned.metadata, planned.source
    if not isinstance(metadata, ArrayMetadata) or not isinstance(source, SourceArray):
        return PlannedNode(planned.path, source.path, metadata, None)
    read = source.chunks or (1,) * len(source.shape)
    sizes = Sizes.of(metadata, read, processors())
    return PlannedNode(planned.path, source.path, metadata, choose(sizes, memory, strategy), read)
