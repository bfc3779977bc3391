"""Convert NumPy, HDF5, NetCDF, TIFF and Zarr of any version to Zarr of any version.

open    the source lists its arrays and groups (`tessarr.tools.sources`); files are scanned first (`tessarr.tools.files`)
plan    everything is decided and validated before anything is written (`copy_tree.plan_tree`)
write   the tasks of a plan (`tessarr.plan`), in boxes of bounded size, to a place beside the destination (`staging.staged`)
verify  each task reads back what it wrote, and compares it bit for bit
swap    the complete result is renamed to the destination
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from tessarr import registry
from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.conventions import ome
from tessarr.core.array import Array
from tessarr.core.creation.shorthands import consolidate_metadata
from tessarr.core.group import Group
from tessarr.core.notebook.bar import shows_progress
from tessarr.errors import UnsupportedOperationError
from tessarr.metadata import n5_dialects
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.path import prefix_of
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.branches import commits
from tessarr.tools.copy_tree import Choices, ChunksChoice, TreePlan, format_of, plan_tree
from tessarr.tools.files.joined import FilesSource
from tessarr.tools.files.open import open_to_convert
from tessarr.tools.sources.base import Source, SourceArray, SourceGroup
from tessarr.tools.sources.zarr import ZarrSource
from tessarr.tools.staging import Staging, axis_order_of, check_free, local_path, staged
from tessarr.types import JSONObject, Progress
from tessarr.virtual.references import is_kerchunk, is_parquet, save_references


@dataclass(slots=True, kw_only=True)
class Report:
    """Describe what a conversion did, or, in a dry run, would do."""

    source: str
    kind: str
    dest: str
    path: str
    zarr_format: int
    plan: TreePlan
    written: bool
    verified: bool
    nbytes_stored: int | None
    """``None`` in a dry run, and where the store cannot list."""
    seconds: float

    def to_json(self) -> JSONObject:
        """Return the report as a JSON object."""
        return {
            "source": self.source,
            "kind": self.kind,
            "dest": self.dest,
            "path": f"/{self.path}",
            "zarr_format": self.zarr_format,
            "written": self.written,
            "verified": self.verified,
            "nbytes": self.plan.nbytes,
            "nbytes_stored": self.nbytes_stored,
            "seconds": round(self.seconds, 3),
            "nodes": [node.to_json() for node in self.plan.nodes],
            "notices": list(self.plan.notices),
        }


@commits
@shows_progress(nbytes=True)
def convert(
    source: StoreLike | Sequence[str | os.PathLike[str]], dest: StoreLike, *, path: str = "", kind: str | None = None,
    along: str | None = None, gaps: bool = False, unpack: bool = False, zarr_format: int | str = 3,
    chunks: ChunksChoice = "keep", shards: ChunksChoice = "keep", filters: CodecsLike = "keep",
    compressors: CodecsLike = "keep", codecs: Sequence[CodecLike] | None = None, include: Sequence[str] = (),
    exclude: Sequence[str] = (), rename: Mapping[str, str] | None = None, overwrite: bool = False, verify: bool = True,
    consolidate: bool = False, plain: bool = False, jobs: int = 1, executor: Executor | None = None, dry_run: bool = False,
    progress: Progress | None = None,
    storage_options: Mapping[str, object] | None = None, source_storage_options: Mapping[str, object] | None = None,
) -> Report:  # fmt: skip
    """Convert files or a Zarr hierarchy to Zarr. A conversion that fails leaves the destination as it was.

    - `source`: a path or URL, or what `tessarr.open` accepts; or many files, as a list or a pattern such as ``"*.nc"``.
      `kind` names its format where detection fails.
    - `along`: the dimension of which each of many files has a part, or a new one; ``None``: that in which the first two
      differ. Files are ordered by its coordinate; `gaps` allows steps that are missing between them.
    - `unpack`: write the floats for which packed integers stand (CF ``scale_factor``, ``add_offset``), NaN where missing.
    - `dest`: a path (``….zip`` makes a zip file), a URL or a store; `path`: the node in it, by default the root; `zarr_format`:
      1, 2, 3, or "keep" for that of a Zarr source. In an N5 container (``….n5|n5:``) arrays become datasets.
    - `chunks`, `shards`: see `tessarr.tools.copy_tree.ChunksChoice`. `filters`, `compressors`: as in `tessarr.create_array`;
      `codecs`: the whole v3 chain. "keep" is as in the source, where the format can express it.
    - `include`, `exclude`: patterns of paths, each with all below; `rename`: old → new name; `plain`: default chunk keys.
    - `verify`: read back and compare bit for bit. `jobs`: tasks, and threads that scan without an `executor`, at once.

    Raises `BaseZarrError` when something is at `dest` and not `overwrite`, the format cannot hold an array, files disagree, or
    values read back differ; `StoreError` for a damaged file, `ConflictError` for a changed one; `MissingDependencyError`.

    >>> import numpy, tempfile, tessarr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/a.npy", numpy.arange(6).reshape(2, 3))
    ...     report = convert(f"{folder}/a.npy", f"{folder}/a.zarr", chunks=(1, 3))
    ...     report.verified, tessarr.open(f"{folder}/a.zarr")[1].tolist()
    (True, [3, 4, 5])
    """
    began = time.perf_counter()
    check_free(dest, path, overwrite=overwrite, storage_options=storage_options)
    opened = open_to_convert(
        source, kind, along=along, gaps=gaps, unpack=unpack, jobs=max(1, jobs), executor=executor,
        storage_options=source_storage_options)  # fmt: skip
    try:
        choices = Choices(
            axis_order=axis_order_of(dest, storage_options), zarr_format=format_of(opened, zarr_format), chunks=chunks,
            shards=shards, filters=filters, compressors=compressors, codecs=codecs, include=include, exclude=exclude,
            rename=rename or {}, plain=plain,
        )  # fmt: skip
        plan, stored = _described(plan_tree(opened, choices), choices), None
        if not dry_run:
            carry_out, number = registry.higher("tessarr.plan.carry_out"), choices.zarr_format or 3
            place = staged(dest, path, overwrite=overwrite, zarr_format=number, storage_options=storage_options)
            with place as staging:
                carry_out(plan, opened, staging, verify=verify, jobs=max(1, jobs), progress=progress)
                stored = _finish(plan, opened, staging, consolidate)
    finally:
        opened.close()
    return Report(
        source=_name(source), kind=opened.kind, dest=local_path(dest) or _name(dest), path=path.strip("/"),
        zarr_format=choices.zarr_format or 3, plan=plan, written=not dry_run, verified=verify and not dry_run,
        nbytes_stored=stored, seconds=time.perf_counter() - began,
    )  # fmt: skip


def save_file_references(
    source: StoreLike | Sequence[str | os.PathLike[str]], dest: StoreLike, *, kind: str | None = None,
    along: str | None = None, gaps: bool = False, include: Sequence[str] = (), exclude: Sequence[str] = (),
    rename: Mapping[str, str] | None = None, zarr_format: Literal[2, 3] | None = None, overwrite: bool = False, jobs: int = 1,
    executor: Executor | None = None, storage_options: Mapping[str, object] | None = None,
    source_storage_options: Mapping[str, object] | None = None,
) -> int:  # fmt: skip
    """Write references to the chunks of files, or of a Zarr hierarchy, in place of a copy. Returns their number.

    Coordinates are copied, each as one chunk, so that opening the result reads no file. `dest`, and the form of references: see
    `tessarr.virtual.save_references`. `zarr_format`: of the documents in a Kerchunk file, 3 unless given; 2 is what kerchunk
    writes, and VirtualiZarr and zarr-python 2 read. The other arguments: see `convert`. Raises the errors of both;
    `UnsupportedOperationError` for an array that only the format's package can read: it says why, and for a `zarr_format` that
    the other forms do not have (Parquet is 2, arrays with manifests are 3).
    """
    only: Literal[2, 3] | None = 2 if is_parquet(dest) else None if is_kerchunk(dest) else 3
    if only is not None and zarr_format not in (None, only):
        raise UnsupportedOperationError(
            f"references of this form have documents of format {only}", store=_name(dest), got=f"format {zarr_format}",
            hint="Leave the format out, or write a Kerchunk file: a name that ends in .json",
        )  # fmt: skip
    zarr_format = only or zarr_format or 3
    opened = open_to_convert(
        source,
        kind,
        along=along,
        gaps=gaps,
        jobs=max(1, jobs),
        executor=executor,
        storage_options=source_storage_options,
    )
    with closing(opened):
        if isinstance(opened, ZarrSource):
            given: dict[str, ArrayMetadata | GroupMetadata] | None = {} if zarr_format == 2 else None
            return save_references(opened.node, dest, v2=given, overwrite=overwrite, storage_options=storage_options)
        if not isinstance(opened, FilesSource):
            raise UnsupportedOperationError("there are no references to members of an archive", store=_name(source))
        choices = Choices(
            zarr_format=zarr_format,
            filters=None,
            compressors=None,
            include=include,
            exclude=exclude,
            rename=rename or {},
        )
        tree = plan_tree(opened, choices)
        nodes: dict[str, Array | GroupMetadata] = {}
        inline: dict[str, Array] = {}
        for planned in tree.nodes:
            node, metadata = planned.source, planned.metadata
            if isinstance(metadata, GroupMetadata):
                nodes[planned.path] = GroupMetadata(zarr_format=3, attributes=metadata.attributes)
            elif isinstance(node, SourceArray) and node.is_coordinate:
                inline[planned.path] = Array._opened(MemoryStore(), "", metadata, read_only=False, config=None)
                inline[planned.path][...] = node.read(tuple(slice(0, n) for n in node.shape))
            else:
                nodes[planned.path] = opened.stored(node.path)
        v2 = {one.path: one.metadata for one in tree.nodes} if zarr_format == 2 else None
        return save_references(nodes, dest, inline=inline, v2=v2, overwrite=overwrite, storage_options=storage_options)


def _described(plan: TreePlan, choices: Choices) -> TreePlan:
    """Add to images that become N5, and to their levels, the attributes by which programs for N5 find them."""
    by_path = {node.path: node.metadata for node in plan.nodes}
    for node in plan.nodes if choices.axis_order is not None else ():
        images = ome.read(node.metadata.attributes) if isinstance(node.metadata, GroupMetadata) else ()
        for image in images[:1]:
            ndim = len(image.axes)
            if not ndim or not image.levels:
                continue
            levels = [
                n5_dialects.Stated(one.path, one.scale or (1.0,) * ndim, one.translation or (0.0,) * ndim)
                for one in image.levels
            ]
            names, units = [axis.name for axis in image.axes], [axis.unit for axis in image.axes]
            group, below = n5_dialects.dialects_of(names, units, levels)
            node.metadata.attributes.update({**group, **node.metadata.attributes})
            for path, attributes in below.items():
                found = by_path.get(f"{prefix_of(node.path)}{path}")
                if isinstance(found, ArrayMetadata):
                    found.attributes.update({**attributes, **found.attributes})
    return plan


def _finish(plan: TreePlan, source: Source, staging: Staging, consolidate: bool) -> int | None:
    """Check that the source is unchanged, and consolidate if requested; return the bytes stored, if the store can list."""
    if isinstance(source, FilesSource):
        source.check_unchanged()
    elif isinstance(source, ZarrSource):
        source.check_unchanged(grown=True)
    store, path = staging.store, staging.path
    if consolidate and isinstance(plan.nodes[0].source, SourceGroup):
        consolidate_metadata(store, path=path or None)
    return store.getsize_prefix(prefix_of(path)) if store.supports_listing else None


def _name(place: object) -> str:
    if isinstance(place, Array | Group):
        return str(place.store_path)
    if isinstance(place, list | tuple):
        names = [str(one) for one in place]
        return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)
    return str(getattr(place, "url", place))
