"""Make the plans that write to another place: resolve what is read and written, and choose the boxes of the tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import get_args

import numpy.typing as npt

from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.core.locate import locate
from tessarr.errors import UnsupportedOperationError
from tessarr.grids.guess import parse_nbytes
from tessarr.plan.kinds.converting import How, is_local, planned_nodes
from tessarr.plan.kinds.copying import Copying, is_consolidated, planned_copies
from tessarr.plan.kinds.destination import check_apart, check_format, destination
from tessarr.plan.manifest import Manifest, PlannedNode, new_id
from tessarr.plan.plan import Plan
from tessarr.plan.publish import check_writable
from tessarr.plan.sources import identity, options_of_source, place_of
from tessarr.plan.strategies.strategy import LOCAL, Name
from tessarr.plan.task import Work, Worker
from tessarr.stores.base import Store
from tessarr.stores.url import StoreLike
from tessarr.tools.copy_tree import Choices, ChunksChoice, format_of
from tessarr.tools.files.open import open_to_convert, without_passwords
from tessarr.tools.sources.base import Source
from tessarr.tools.staging import from_above, local_path
from tessarr.types import JSONObject

MEMORY = "512MiB"
"""What a task may hold unless the user says otherwise."""


def rechunk(
    source: StoreLike, dest: StoreLike, *, path: str = "", chunks: ChunksChoice = "keep", shards: ChunksChoice = "keep",
    filters: CodecsLike = "keep", compressors: CodecsLike = "keep", codecs: Sequence[CodecLike] | None = None,
    dtype: npt.DTypeLike | None = None, memory: int | str = MEMORY, strategy: Name = "auto", scratch: str | None = None,
    overwrite: bool = False, verify: bool = True, storage_options: Mapping[str, object] | None = None,
    source_storage_options: Mapping[str, object] | None = None,
) -> Plan:  # fmt: skip
    """Plan to rewrite an array, or every array of a hierarchy, with other chunks, shards, codecs or types; all else is kept.

    `source`, `dest`: what `tessarr.open` accepts; `path`: the node in `dest`. `chunks`, `shards`: "keep", "auto", a size
    ("8MB"), one length along every axis, lengths for arrays of that many dimensions, or by dimension name; -1 is a whole axis,
    a list the length of each chunk along an axis, ``None`` no shards. `dtype`: of all arrays, of their kind. `memory`: the most
    bytes that a task may hold, its threads included, as a number or "2GB". `strategy`: "direct" reads the source for each box
    of the target, "staged" stores an intermediate array beside the target, "scratch" on the disk of the worker, "regroup" moves
    encoded chunks; "auto" is what costs least. `scratch`: a directory on each worker for intermediate arrays,
    which is created where it is missing, or "local" for its temporary files. `verify`: each task reads back what it wrote.
    `source_storage_options`: ``None`` for `storage_options`, unless the URL of `dest` has another scheme. Consolidated metadata
    are written again. Nothing is written yet.

    Raises `BaseZarrError` when something is at `dest` and not `overwrite`, or where one stored chunk needs more memory;
    `MixedFormatsError` for a node that the group above, of another format, does not find; `UnsupportedOperationError` where the
    source is, holds, or is within the target, or for a strategy that is impossible.
    """
    if strategy not in get_args(Name):
        raise ValueError(f"strategy must be one of {', '.join(get_args(Name))}; got {strategy!r}")
    most = parse_nbytes(memory, "memory") if isinstance(memory, str) else memory
    choices = Choices(
        zarr_format=None,
        chunks=chunks,
        shards=shards,
        filters=filters,
        compressors=compressors,
        codecs=codecs,
        keep_names=True,
    )
    scratch = scratch or (LOCAL if strategy == "scratch" else None)
    if scratch not in (None, LOCAL):
        scratch = os.path.abspath(os.path.expanduser(scratch))
    how = How(most, strategy, scratch, dtype, is_local(dest), verify)
    notices: list[str] = []
    return _writing(
        "rechunk", Worker, lambda opened: planned_nodes(opened, choices, how, notices), source, dest, path, overwrite=overwrite,
        verify=verify, options={"scratch": how.scratch}, storage_options=storage_options,
        source_storage_options=source_storage_options, notices=notices,
    )  # fmt: skip


def convert(
    source: StoreLike | Sequence[str | os.PathLike[str]], dest: StoreLike, *, path: str = "", kind: str | None = None,
    along: str | None = None, gaps: bool = False, unpack: bool = False, zarr_format: int | str = 3,
    chunks: ChunksChoice = "keep",
    shards: ChunksChoice = "keep", filters: CodecsLike = "keep", compressors: CodecsLike = "keep",
    codecs: Sequence[CodecLike] | None = None, include: Sequence[str] = (), exclude: Sequence[str] = (),
    rename: Mapping[str, str] | None = None, memory: int | str = MEMORY,
    overwrite: bool = False, verify: bool = True, consolidate: bool = False, plain: bool = False,
    storage_options: Mapping[str, object] | None = None, source_storage_options: Mapping[str, object] | None = None,
) -> Plan:  # fmt: skip
    """Plan to convert files or a Zarr hierarchy to Zarr; the arguments of `tessarr.tools.convert.convert` mean the same here.

    `source`: also a list or a pattern of many files. Files are scanned here; workers read the table of them. Tasks read the
    chunks that the files have, by references, and use the format's package only for what Zarr cannot decode. `memory`: the
    most bytes that a task may hold. Workers read the files by the paths or URLs that are given here. Nothing is written yet.

    Raises the errors of `rechunk`, and those of planning a conversion.
    """
    most = parse_nbytes(memory, "memory") if isinstance(memory, str) else memory

    notices: list[str] = []

    def nodes(opened: Source) -> Iterator[PlannedNode]:
        choices = Choices(
            zarr_format=format_of(opened, zarr_format), chunks=chunks, shards=shards, filters=filters,
            compressors=compressors, codecs=codecs, include=include, exclude=exclude, rename=rename or {}, plain=plain,
        )  # fmt: skip
        return planned_nodes(opened, choices, How(most, local=is_local(dest), verify=verify), notices)

    return _writing(
        "convert", Worker, nodes, source, dest, path, kind=kind, overwrite=overwrite, verify=verify, consolidate=consolidate,
        storage_options=storage_options, source_storage_options=source_storage_options,
        options={"along": along, "gaps": gaps, "unpack": unpack}, notices=notices,
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


def _writing(
    operation: str, work: Callable[[Manifest, Source, Store, str], Work], nodes: Callable[[Source], Iterable[PlannedNode]],
    source: StoreLike | Sequence[str | os.PathLike[str]], dest: StoreLike, path: str, *, kind: str | None = None,
    overwrite: bool, verify: bool,
    consolidate: bool = False, options: JSONObject | None = None, storage_options: Mapping[str, object] | None,
    source_storage_options: Mapping[str, object] | None, notices: Sequence[str] = (),
) -> Plan:  # fmt: skip
    """Make the plan of an operation that writes `nodes` of the source to `dest`."""
    number = new_id()
    _check_target(dest, storage_options)
    dest, path = from_above(dest, path, overwrite=overwrite, storage_options=storage_options)
    found = destination(dest, path, number, overwrite=overwrite, storage_options=storage_options)
    if isinstance(source, str) and isinstance(dest, str):
        source_storage_options = options_of_source(source, dest, storage_options, source_storage_options)
    source, source_storage_options = without_passwords(source, source_storage_options)
    said: JSONObject = options or {}
    along = said.get("along")
    opened = open_to_convert(
        source, kind, along=None if along is None else str(along), gaps=bool(said.get("gaps")),
        unpack=bool(said.get("unpack")), storage_options=source_storage_options,
    )  # fmt: skip
    check_apart(getattr(opened, "node", None), found)
    place, known = place_of(source, opened)
    manifest = Manifest(
        number, operation, place, known, identity(place, known, opened), found.target, found.work, overwrite, verify,
        tuple(nodes(opened)),
        {"consolidate": consolidate or (operation in ("copy", "rechunk") and is_consolidated(opened)), **said},
    )  # fmt: skip
    check_format(found, manifest.nodes[0].metadata.zarr_format)
    check_writable(node.metadata for node in manifest.nodes)
    plan = Plan(manifest, work(manifest, opened, found.store, found.path), (found.store, found.path))
    plan._storage_options = storage_options
    plan.notices = tuple(notices)
    return plan


def _check_target(dest: StoreLike, storage_options: Mapping[str, object] | None) -> None:
    """Raise `ReadOnlyError` for a store that is not written to, `UnsupportedOperationError` for a session of Icechunk and a
    container of N5. Requests nothing."""
    if local_path(dest) is not None:
        return
    from tessarr.stores.virtual.branches import is_session
    from tessarr.stores.virtual.container import ContainerStore

    store, path, _ = locate(dest, None, None, storage_options)
    store._check_writable(path)
    if is_session(store):
        raise UnsupportedOperationError(
            "tasks write chunks before documents, which Icechunk refuses, and commit nothing",
            store=store.url,
            hint="Write with tessarr.dask.store or tessarr.xarray.to_zarr, which fork the session and merge it",
        )
    if isinstance(store, ContainerStore):
        raise UnsupportedOperationError(
            "tasks write chunks before documents, and a directory of N5 with blocks is a group",
            store=store.url,
            hint="Convert to it in one process (tessarr.tools.convert)",
        )
