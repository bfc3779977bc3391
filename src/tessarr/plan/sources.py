"""The source of a plan: where another process opens it, and how a change of it is noticed.

What listings of a store say of the values (their *stamps*) is a milestone of the plan, one line for each array, and is compared
when the plan is finished. No task makes a request for it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from tessarr.common import strict_json
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.open import open as open_node
from tessarr.errors import ConflictError
from tessarr.metadata.formats import DOCUMENT_NAMES
from tessarr.plan.manifest import Manifest, Place
from tessarr.plan.markers import Milestones
from tessarr.plan.publish import options_at, reopenable_url
from tessarr.stores.base import Store
from tessarr.stores.functions import stamp_below
from tessarr.stores.path import join, prefix_of
from tessarr.stores.url import StoreLike, is_url
from tessarr.stores.wrappers.prefix import PrefixStore
from tessarr.tools.files.open import IN_PLACE, open_to_convert
from tessarr.tools.sources.base import Source
from tessarr.tools.sources.zarr import ZarrSource
from tessarr.tools.staging import local_path
from tessarr.types import JSONObject

if TYPE_CHECKING:
    from tessarr.tools.files.joined import FilesSource

BEFORE = "source"
"""The milestone of a plan that says what the values of its source were before the first task."""
_NAMED = 5
"""So many arrays are named by an error."""
Folder: TypeAlias = tuple[Store, str]
"""Of a saved plan: its store, and the prefix of its keys."""


def files_of(source: Source) -> FilesSource | None:
    """Return the source if it is made of files that were scanned."""
    if source.kind in IN_PLACE:
        return None
    from tessarr.tools.files.joined import FilesSource

    return source if isinstance(source, FilesSource) else None


def place_of(source: StoreLike | Sequence[str | os.PathLike[str]], opened: Source) -> tuple[Place, str]:
    """Return where another process opens the source, and its format; of a list the first file: all are in the table."""
    node = getattr(opened, "node", None)
    if isinstance(node, Array | Group):
        return Place(reopenable_url(node._store), node._path), "zarr"
    name = os.fspath(source[0] if isinstance(source, list | tuple) else cast("str | os.PathLike[str]", source))
    if name.startswith("memory:"):
        return Place(""), opened.kind
    return Place(name if is_url(name) else os.path.abspath(local_path(name) or name)), opened.kind


def identity(place: Place, kind: str, source: Source) -> str:
    """Describe what the source is, so that a change of it is noticed: its documents, or the size and time of its file."""
    node = getattr(source, "node", None)
    if (files := files_of(source)) is not None:
        return files.table.identity
    if kind != "zarr" or node is None:
        found = os.stat(place.url)
        return f"{found.st_size}-{found.st_mtime_ns}"
    members = [] if isinstance(node, Array) else sorted(node.members(max_depth=None))
    documents = [node._metadata.to_dict(), *(member._metadata.to_dict() for _, member in members)]
    return hashlib.sha256(b"".join(strict_json.dumps(one, allow_nan=True) for one in documents)).hexdigest()


def options_of_source(
    source: str, target: str, storage_options: Mapping[str, object] | None, own: Mapping[str, object] | None
) -> Mapping[str, object] | None:
    """Return the options of the source: its `own`, else those of the target, where both are in stores of one scheme or the
    target is local.

    >>> options_of_source("https://host/a", "s3://bucket/b", {"region": "x"}, None)
    >>> options_of_source("s3://bucket/a", "b.zarr", {"region": "x"}, None)
    {'region': 'x'}
    """
    schemes = {place.partition("://")[0].partition("+")[0] for place in (source, target) if "://" in place}
    return options_at(source, own or (storage_options if len(schemes - {"file"}) < 2 else None))


def check_unchanged(source: Source) -> None:
    """Raise `ConflictError` for a scanned file that has changed, or a Zarr source since it was opened for the plan."""
    if isinstance(source, ZarrSource):
        source.check_unchanged()
    elif (files := files_of(source)) is not None:
        files.check_unchanged()


def table_path(manifest: Manifest, folder: str) -> str:
    """Return the path of the table of scanned files below the folder of a saved plan."""
    return join(folder.strip("/"), manifest.files)


def save_files(manifest: Manifest, source: Source, folder: Folder) -> None:
    """Write the table of the files that were scanned, from which workers read, to a folder that gets no other document."""
    if (files := files_of(source)) is not None:
        from tessarr.tools.files.file_table import save_table

        save_table(files.table, PrefixStore(folder[0], table_path(manifest, folder[1])), "")


def reopened(
    manifest: Manifest, storage_options: Mapping[str, object] | None = None, folder: Folder | None = None
) -> Source:
    """Open the source of a plan. `folder`: where the table of its files is; without it they are scanned again.

    Raises `ConflictError` when the source has changed since the plan was made. A file of a table is compared when it is read.
    """
    place, kind = manifest.source, manifest.kind
    here = options_at(place.url, storage_options)
    source: Source
    if folder is not None and kind not in IN_PLACE:
        from tessarr.tools.files.joined import FilesSource

        source = FilesSource.loaded(
            folder[0], table_path(manifest, folder[1]), unpack=bool(manifest.options.get("unpack")),
            storage_options=storage_options,
        )  # fmt: skip
    elif kind == "zarr":
        source = ZarrSource(open_node(place.url, path=place.path or None, mode="r", storage_options=here))
    else:
        options = manifest.options
        along = options.get("along")
        source = open_to_convert(
            place.url, kind, along=None if along is None else str(along), gaps=bool(options.get("gaps")),
            unpack=bool(options.get("unpack")), storage_options=here,
        )  # fmt: skip
    if (found := identity(place, kind, source)) != manifest.identity:
        raise ConflictError(
            "the source has changed since the plan was made",
            store=place.url,
            expected=manifest.identity,
            got=found,
            hint="Make the plan again",
        )
    return source


def watch_values(manifest: Manifest, source: Source | None, milestones: Milestones) -> None:
    """Record what the values of a Zarr source are, unless that was done, by any client."""
    if isinstance(source, ZarrSource) and not milestones.reached(BEFORE):
        milestones.reach_first(BEFORE, _stamps(manifest, source.node))


def check_values(manifest: Manifest, source: Source, milestones: Milestones) -> None:
    """Raise `ConflictError` where values of a Zarr source are others than before the first task."""
    before = milestones.value(BEFORE)
    if not isinstance(source, ZarrSource) or not isinstance(before, Mapping):
        return
    node = source.node
    now = _stamps(manifest, node)
    if changed := [path for path, stamp in before.items() if now.get(path) != stamp]:
        more = ", …" if len(changed) > _NAMED else ""
        raise ConflictError(
            "values of the source changed while tasks read them",
            store=node._store.url,
            path=f"/{join(node._path, changed[0])}",
            got="arrays that changed: " + ", ".join(f"/{path}" for path in changed[:_NAMED]) + more,
            hint="Make the plan again, or finish it with allow_changed_values=True (--allow-changed-values)",
        )


def _stamps(manifest: Manifest, node: Array | Group) -> JSONObject:
    """Return a stamp of the stored values of each array that is read, where the store's listings say enough."""
    found: JSONObject = {}
    for path in {planned.source for planned in manifest.nodes if planned.strategy is not None}:
        array = node.get(path) if isinstance(node, Group) and path else node
        if isinstance(array, Array) and not array._metadata.storage_transformers:
            stamp = stamp_below(array._store, prefix_of(array._path), _is_value)
            if stamp is not None:
                found[path] = stamp
    return found


def _is_value(key: str) -> bool:
    name = key.rpartition("/")[2]
    return name not in DOCUMENT_NAMES and not name.startswith(".")
