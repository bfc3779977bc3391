"""Collect what a notebook shows of an array or a group, without reading data.

An array is described by its metadata, which are in memory; which of its values are stored is looked up where there are few, in
this process or on this machine's file system. The members of a group come from its consolidated metadata. Where
there are none, a store in this process or on this machine's file system is listed once, and the documents of the first members
are read; any other store is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np

from tessarr.core.info import array_info, group_info
from tessarr.core.notebook.grid_svg import DrawnAxis, Stored, caption_of, draw
from tessarr.core.notebook.node_html import Branch, node_html
from tessarr.core.stored import read_nodes
from tessarr.core.stored.walk import Entry, read_entries
from tessarr.errors import TessarrError
from tessarr.metadata import formats
from tessarr.metadata.consolidated import Consolidated
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.path import is_reserved_name, prefix_of

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.core.array_parts.chunk_properties import ChunkProperties
    from tessarr.core.group_parts.members import Members

MAX_MEMBERS = 60
"""Members that a tree shows at all depths."""
MAX_DEPTH = 4
MAX_LOOKS = 256
"""Values (chunks or shards) of an array that are looked up."""
_DESCRIBED_BY_THE_TITLE = {"Name", "Type"}


def array_html(
    array: ChunkProperties, stored: Stored | None = None, *, title: str | None = None, without: Collection[str] = ()
) -> str:
    """Describe an array in HTML, with a drawing of its grid; `stored` values are looked up where they are not given.

    `title`: by default the kind and the name; `without`: names of facts that are left out.
    """
    axes = drawn_axes(array)
    hidden = {*_DESCRIBED_BY_THE_TITLE, *without}
    rows = [item for item in array_info(cast("Array", array)).items if item[0] not in hidden]
    if array._sharding is not None:
        inner = ", ".join(codec.name for codec in array._sharding.codecs)
        rows = [(key, f"{text} of chunks by {inner}" if key == "Codecs" else text) for key, text in rows]
    stored = _stored(array) if stored is None else stored
    return node_html(
        f"Array {array.name}" if title is None else title,
        rows,
        array._metadata.attributes,
        figure=draw(axes, stored),
        caption=caption_of(axes, stored),
    )


def _stored(array: ChunkProperties) -> Stored | None:
    """Look which values are stored; ``None`` where each look is a request, or where there are many."""
    bound = array._bound
    counts = [axis.nchunks for axis in bound.axes]
    if not isinstance(bound.store, LocalStore | MemoryStore) or not 0 < prod(counts) <= MAX_LOOKS:
        return None
    found = [bound.store.exists(bound.key(coords)) for coords in np.ndindex(*counts)]
    return np.array(found, bool).reshape(counts)


def drawn_axes(array: ChunkProperties) -> list[DrawnAxis]:
    """Name the axes of an array, and cut them into chunks and shards."""
    names = array._metadata.dimension_names or (None,) * len(array.shape)
    stored = array._bound.axes
    sharded = array._sharding is not None
    return [
        DrawnAxis(f"axis {i}" if name is None else name, chunks, shards if sharded else None)
        for i, (name, chunks, shards) in enumerate(zip(names, array._chunk_axes, stored, strict=True))
    ]


def group_html(group: Members) -> str:
    """Describe a group in HTML, with a tree of its first members."""
    rows = [item for item in group_info(group).items if item[0] not in _DESCRIBED_BY_THE_TITLE]
    block = group._metadata.consolidated_metadata
    if block is not None and not block.changed_below():
        tree = consolidated_tree(block)
    elif isinstance(group._store, LocalStore | MemoryStore):
        tree = _listed_tree(group)
    else:
        how = "group.tree() or group.members() shows them"
        tree = Branch("", note=f"The members are not listed, because each listing is a request to the store: {how}.")
    return node_html(f"Group {group.name}", rows, group._metadata.attributes, tree=tree)


def _text(metadata: read_nodes.NodeMetadata | None) -> str:
    """Describe a member in one line, by its metadata."""
    if metadata is None or isinstance(metadata, GroupMetadata):
        return ""
    names = metadata.dimension_names
    shape = ", ".join(
        f"{n:,}" if not names or names[i] is None else f"{names[i]}: {n:,}" for i, n in enumerate(metadata.shape)
    )
    return f"({shape}) {metadata.data_type.name}"


def consolidated_tree(block: Consolidated) -> Branch:
    """Choose the members that are shown level by level, so that a large group hides none of its neighbours."""
    chosen: dict[str, list[str]] = {}
    left: dict[str, int] = {}
    level, budget = [""], MAX_MEMBERS
    for _ in range(MAX_DEPTH):
        below: list[str] = []
        for path in level:
            children = block.children(path)
            names = sorted(children)
            chosen[path] = names[:budget]
            left[path] = len(names) - len(chosen[path])
            budget -= len(chosen[path])
            below += [prefix_of(path) + name for name in chosen[path] if children[name] == "group"]
        level = below
    unseen = {path for path in level if block.children(path)}
    return _branch(block, "", chosen, left, unseen)


def _branch(
    block: Consolidated, path: str, chosen: dict[str, list[str]], left: dict[str, int], unseen: set[str]
) -> Branch:
    below = [_branch(block, prefix_of(path) + name, chosen, left, unseen) for name in chosen.get(path, ())]
    note = "…" if path in unseen else _more(left.get(path, 0))
    return Branch(path.rpartition("/")[2], _consolidated_text(block, path) if path else "", below, note)


def _consolidated_text(block: Consolidated, path: str) -> str:
    try:
        return "group" if block.kind(path) == "group" else _text(block.parsed(path))
    except TessarrError:
        return "cannot be read"


def _listed_tree(group: Members) -> Branch:
    """List the direct members of a group, and read the documents of the first ones."""
    try:
        prefix = prefix_of(group._path)
        zarr_format = group._metadata.zarr_format
        names = sorted(child[len(prefix) : -1] for child in group._store.list_dir(prefix).prefixes)
        names = [name for name in names if name and not (zarr_format == 3 and is_reserved_name(name))]
        shown = list(_read_members(group, names[:MAX_MEMBERS]))
    except (TessarrError, OSError) as error:
        return Branch("", note=f"The members cannot be listed: {type(error).__name__}")
    return Branch("", below=shown, note=_more(len(names) - len(names[:MAX_MEMBERS])))


def _read_members(group: Members, names: list[str]) -> Iterator[Branch]:
    zarr_format = group._metadata.zarr_format
    paths = [prefix_of(group._path) + name for name in names]
    entries = read_entries(group._store, paths, formats.KEYS[zarr_format].all)
    for name, entry in zip(names, entries, strict=True):
        if zarr_format not in entry.formats:
            continue
        yield branch_of(group._store, name, entry)


def branch_of(store: Store, name: str, entry: Entry) -> Branch:
    """Describe a member by its documents in its newest format."""
    try:
        metadata = read_nodes.parsed(store, entry, entry.formats[0])
    except TessarrError:
        return Branch(name, "cannot be read")
    return Branch(name, "group" if isinstance(metadata, GroupMetadata) else _text(metadata))


def _more(count: int) -> str:
    return f"… {count:,} more" if count else ""
