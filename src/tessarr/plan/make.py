"""Make plans: resolve what is read and written, and choose the boxes of the tasks."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy.typing as npt

from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.conventions.ome import Axis
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.open import open as open_node
from tessarr.core.stored.walk import read_entries
from tessarr.errors import UnsupportedOperationError
from tessarr.grids.guess import parse_nbytes
from tessarr.plan.kinds.checking import Checking, planned_check, state_of
from tessarr.plan.kinds.converting import How, is_local, planned_nodes
from tessarr.plan.kinds.copying import Copying, is_consolidated, planned_copies
from tessarr.plan.kinds.digesting import Digesting, planned_digests
from tessarr.plan.kinds.pyramids import Levels, Pyramid, planned_pyramid
from tessarr.plan.manifest import Manifest, Place, PlannedNode
from tessarr.plan.plan import Plan
from tessarr.plan.publish import check_apart, destination, reopenable_url
from tessarr.plan.sources import identity, place_of
from tessarr.plan.strategies.scratch import LOCAL
from tessarr.plan.strategies.strategy import Name
from tessarr.plan.task import Work, Worker
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.protocols import Delete
from tessarr.stores.url import StoreLike
from tessarr.tools.check import Level, check_documents
from tessarr.tools.copy_tree import Choices, ChunksChoice, format_of
from tessarr.tools.files.open import open_to_convert, without_passwords
from tessarr.tools.pyramid import Describing, Method, check_free, levels_of, open_writable
from tessarr.tools.pyramid.levels import MIN_SIZE, Factors
from tessarr.tools.sources.base import Source
from tessarr.tools.sources.zarr import ZarrSource
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

    `source`, `dest`: what `tessarr.open` accepts; `path`: the node in `dest`. `dtype`: of all arrays, of their kind. `memory`:
    the most bytes that a task may hold, its threads included, as a number or "2GB". `strategy`: "direct" reads the source for
    each box of the target, "staged" stores an intermediate array beside the target, "scratch" on the disk of the worker,
    "regroup" moves encoded chunks; "auto" is what costs least. `scratch`: a directory that each worker has for intermediate
    arrays, or "local" for its temporary files. `verify`: each task reads back what it wrote.
    Nothing is written yet.

    Raises `BaseZarrError` when something is at `dest` and not `overwrite`, or where one stored chunk needs more memory;
    `UnsupportedOperationError` where the source is, holds, or is within the target, or for a strategy that is impossible.
    """
    most = parse_nbytes(memory) if isinstance(memory, str) else memory
    choices = Choices(
        zarr_format=None, chunks=chunks, shards=shards, filters=filters, compressors=compressors, codecs=codecs
    )
    how = How(most, strategy, scratch or (LOCAL if strategy == "scratch" else None), dtype, is_local(dest))
    return _writing(
        "rechunk", Worker, lambda opened: planned_nodes(opened, choices, how), source, dest, path, overwrite=overwrite,
        verify=verify, options={"scratch": how.scratch}, storage_options=storage_options,
        source_storage_options=source_storage_options,
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
    most = parse_nbytes(memory) if isinstance(memory, str) else memory

    def nodes(opened: Source) -> Iterator[PlannedNode]:
        choices = Choices(
            zarr_format=format_of(opened, zarr_format), chunks=chunks, shards=shards, filters=filters,
            compressors=compressors, codecs=codecs, include=include, exclude=exclude, rename=rename or {}, plain=plain,
        )  # fmt: skip
        return planned_nodes(opened, choices, How(most, streamed=is_local(dest)))

    return _writing(
        "convert", Worker, nodes, source, dest, path, kind=kind, overwrite=overwrite, verify=verify, consolidate=consolidate,
        storage_options=storage_options, source_storage_options=source_storage_options,
        options={"along": along, "gaps": gaps, "unpack": unpack},
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


def pyramid(
    group: Group | StoreLike, array: str, *, levels: int | None = None, min_size: int = MIN_SIZE, factors: Factors = 2,
    method: Method | None = None, labels: bool = False, missing: float | int | None = None,
    convention: Describing = "multiscales-0.1", names: Sequence[str] | None = None, name: str | None = None,
    axes: Sequence[Axis] | None = None, scale: Sequence[float] | None = None, translation: Sequence[float] | None = None,
    memory: int | str = MEMORY, overwrite: bool = False, verify: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> Plan:  # fmt: skip
    """Plan the levels of a pyramid; the arguments of `tessarr.tools.pyramid.build_pyramid` mean the same here.

    `memory`: the most bytes that a task may hold, its threads included. A task writes whole shards, or chunks, of a level, and
    waits only for the tasks of the level before that write what it reads. Levels get their documents, and the group its
    attributes, when all are complete; with `overwrite` existing levels are replaced then.

    Raises the errors of `build_pyramid`, `BaseZarrError` where one stored chunk needs more memory, and
    `UnsupportedOperationError` for a store that cannot delete, such as a zip file.

    >>> import tessarr, tessarr.plan
    >>> group = tessarr.create_group({})
    >>> image = group.create_array("0", data=[[1, 3], [5, 7]], chunks=(1, 1))
    >>> tessarr.plan.pyramid(group, "0", levels=1).run().finished, group["1"][...].tolist()
    (True, [[4]])
    """
    where = open_writable(group, storage_options)
    store = where._store
    if not isinstance(store, Delete):
        hint = "Build it in a directory, or in one process (tessarr.tools.pyramid)"
        raise UnsupportedOperationError("tasks cannot share a store that cannot delete", store=store.url, hint=hint)
    base, made, chosen = levels_of(
        where, array, levels=levels, min_size=min_size, factors=factors, method=method, labels=labels, missing=missing,
        names=names,
    )  # fmt: skip
    if not overwrite:
        check_free(where, made)
    number = secrets.token_hex(4)
    found = read_entries(store, [where._join(level.name) for level in made[1:]])
    given = Pyramid(
        levels=tuple(made), documents=(), method=chosen, missing=missing, labels=labels, convention=convention, name=name,
        places=tuple(
            f"{one.name}-{number}.partial" if at.kind or isinstance(store, LocalStore) else one.name
            for one, at in zip(made[1:], found, strict=True)
        ),
        axes=None if axes is None else tuple(axes), scale=None if scale is None else tuple(scale),
        translation=None if translation is None else tuple(translation),
    )  # fmt: skip
    given.described(where, base)  # what does not fit is an error here
    most, source, place = parse_nbytes(memory) if isinstance(memory, str) else memory, ZarrSource(base), where._path
    nodes, given = planned_pyramid(base, given, most, streamed=isinstance(store, LocalStore))
    manifest = Manifest(
        number, "pyramid", place_of(base, source)[0], "zarr", identity(Place(""), "zarr", source),
        Place(reopenable_url(store), place), Place(reopenable_url(store), place), overwrite, verify, nodes, given.to_json(),
    )  # fmt: skip
    return Plan(manifest, Levels(manifest, source, store, place))


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
    source: StoreLike | Sequence[str | os.PathLike[str]], dest: StoreLike, path: str, *, kind: str | None = None,
    overwrite: bool, verify: bool,
    consolidate: bool = False, options: JSONObject | None = None, storage_options: Mapping[str, object] | None,
    source_storage_options: Mapping[str, object] | None,
) -> Plan:  # fmt: skip
    """Make the plan of an operation that writes `nodes` of the source to `dest`."""
    number = secrets.token_hex(4)
    found = destination(dest, path, number, overwrite=overwrite, storage_options=storage_options)
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
        {"consolidate": consolidate or (operation == "copy" and is_consolidated(opened)), **said},
    )  # fmt: skip
    return Plan(manifest, work(manifest, opened, found.store, found.path))
