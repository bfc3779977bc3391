"""Read and write consolidated metadata in a store, and keep it consistent with every change below.

`tessarr.metadata.consolidated` parses and edits the documents (pure); this module does the I/O.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias
from weakref import WeakKeyDictionary

from tessarr.common.warn import Diagnostic, report, warn
from tessarr.core import open_transactions
from tessarr.core.asynchronous.sans_io import run_steps, store_call
from tessarr.core.claims.settle import update_settled_steps
from tessarr.core.stored.walk import Entry, block_of, is_staged, read_entries, read_entries_steps, walk
from tessarr.errors import DurabilityError, StaleConsolidatedError, StoreError, TessarrError, ZarrRuntimeWarning
from tessarr.metadata import consolidated, formats, serialize
from tessarr.metadata.consolidated import FIELD, V2_KEY, Changes, Consolidated
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Fetch, Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.locks import fork_safe_lock
from tessarr.stores.path import ancestors, prefix_of
from tessarr.stores.protocols import ConditionalSet, Lock
from tessarr.types import Buffer, JSONObject, ZarrFormat

Holder: TypeAlias = tuple[str, str]
"""Path of a group, and the name of a document there that may hold consolidated metadata."""
HOLDERS = ("zarr.json", V2_KEY)
"""The names of the documents that may hold consolidated metadata."""
_NOTHING: Mapping[str, Buffer | None] = MappingProxyType({})
_WATCHED: WeakKeyDictionary[Changes, tuple[Store, str]] = WeakKeyDictionary()
"""Consolidated metadata of open groups that write → the store object, and the path of the group that holds them."""
_WATCHED_LOCK = fork_safe_lock()


def read_consolidated(
    store: Store, path: str, group: GroupMetadata, key: str | None = None, known: Mapping[str, Buffer | None] = _NOTHING
) -> Consolidated | None:
    """Read the consolidated metadata of a group whose own document was read; ``None`` when there is no usable one.

    v3: from the document that was read (no further request); v2: from the key `key` (``.zmetadata`` when not given),
    unless the value of that key is in `known`.
    """
    if group.zarr_format == 3:
        diagnostics: list[Diagnostic] = []
        block = consolidated.parse_v3(group.extra.get(FIELD), diagnostics)
        report(diagnostics)
        return block
    name = prefix_of(path) + (key or V2_KEY)
    data = known[name] if name in known else store.get(name)
    return None if data is None else consolidated.parse_v2(formats.loads(V2_KEY, data, key=name))


def is_holder(name: str, data: Buffer | None) -> bool:
    """Whether the document called `name` holds consolidated metadata."""
    return data is not None and (name == V2_KEY or (name == "zarr.json" and FIELD.encode() in bytes(data)))


def _holding(places: Sequence[Holder], answers: Sequence[list[Buffer] | None]) -> list[Holder]:
    """Select those of `places` whose stored value (`answers`, in the same order) holds consolidated metadata."""
    return [place for place, answer in zip(places, answers, strict=True) if answer and is_holder(place[1], answer[0])]


def watch(block: Consolidated, store: Store, path: str) -> None:
    """Note in `block`, which the group at `path` has, what is changed from now on through this store object.

    A group that was opened for writing sees so what its own members change. Other clients' changes need `refresh`.
    """
    with _WATCHED_LOCK:
        _WATCHED.setdefault(block.changes, (store, block.origin(path)))


def _note_changes(store: Store, paths: Sequence[str], removed: Sequence[str]) -> None:
    """Tell groups that were opened from `store` by consolidated metadata which nodes have other documents now."""
    if not _WATCHED:
        return
    with _WATCHED_LOCK:
        watched = [(changes, top) for changes, (where, top) in _WATCHED.items() if where is store]
    for changes, top in watched:
        prefix = prefix_of(top)
        for path in paths:
            if path.startswith(prefix):
                changes.add(path[len(prefix) :])
        for path in removed:
            if prefix.startswith(prefix_of(path)):
                changes.add("", below=True)
            elif path.startswith(prefix):
                changes.add(path[len(prefix) :], below=True)


async def follow_change_steps(
    store: Store,
    path: str,
    *,
    names: Sequence[str] = HOLDERS,
    replaced: bool = False,
    below: Sequence[str] | None = None,
) -> None:
    """Update the consolidated metadata of every group above `path` from the documents now stored at `path`.

    With `replaced` all nodes below `path` were deleted, except those written at the paths `below`. Finding the documents with
    consolidated metadata (called one of `names`) costs one request, and nothing more where no group is consolidated. They are
    looked for after the change, because another writer may consolidate meanwhile. Raises `StaleConsolidatedError`.
    """
    paths = [path] if below is None else below
    try:
        await _follow_steps(store, paths, names, [path] if replaced else [])
    except StoreError as error:
        if isinstance(error, DurabilityError) or open_transactions.is_overlay(store):
            raise  # in a transaction nothing is stored yet
        raise StaleConsolidatedError(
            "the documents are stored, but consolidated metadata could not be updated",
            store=store.url,
            path=f"/{path}",
            key=error.key,
            got=str(error),
            hint="Do not repeat the change: consolidate_metadata or `tessarr repair` writes the consolidated metadata again",
        ) from error
    _follow_outside(store, paths, [path] if replaced else [])


def follow_changes(store: Store, paths: Sequence[str]) -> None:
    """Update consolidated metadata above many nodes, each document once. See `follow_change_steps`."""
    run_steps(_follow_steps(store, paths, HOLDERS, []))
    _follow_outside(store, paths, [])


def follow_directory(path: str) -> None:
    """Update consolidated metadata above a directory that was renamed into place as a whole."""
    store = LocalStore(path)
    entries = walk(store)
    if entries:
        found = entries[0].formats[0]
        _follow_outside(store, [entry.path for entry in entries if found in entry.formats], [""])


def _follow_outside(store: Store, paths: Sequence[str], removed: Sequence[str]) -> None:
    """Apply the setting ``consolidated.above_root`` to the groups above the root of a local store.

    If ``data.zarr/x`` was opened by itself, the consolidated metadata of ``data.zarr`` lacks changes to ``x``. No document
    above the root of the store is written unless the setting is "update".
    """
    if not isinstance(store, LocalStore):
        return
    policy = settings.get("consolidated.above_root")
    if policy not in _POLICIES:
        raise ValueError(f"the setting consolidated.above_root must be one of {', '.join(_POLICIES)}; got {policy!r}")
    root = top = store._root
    while policy != "ignore" and (above := os.path.dirname(top)) != top and _holds_group(above):
        top = above
    inside = os.path.relpath(root, top).replace(os.sep, "/") if top != root else ""
    if not inside or is_staged(inside):
        return
    below = ["/".join(filter(None, (inside, path))) for path in paths]
    left = ["/".join(filter(None, (inside, path))) for path in removed]
    outside = LocalStore(top)
    try:
        if policy == "update":
            run_steps(_follow_steps(outside, below, HOLDERS, left))
        else:
            _warn_of_stale(outside, inside, below, left)
    except (OSError, TessarrError) as error:
        message = f"consolidated metadata of {top} could not be kept in step with {root}: {error}"
        warn(message, ZarrRuntimeWarning)


_POLICIES = ("warn", "update", "ignore")


def _warn_of_stale(store: LocalStore, inside: str, paths: Sequence[str], removed: Sequence[str]) -> None:
    """Warn of each document above the node `inside` whose consolidated metadata differs from the documents at `paths`."""
    for entry in read_entries(store, [*ancestors(inside)], ("zarr.json", V2_KEY)):
        for name, data in entry.values.items():
            if not is_holder(name, data):
                continue
            left = [path[len(entry.prefix) :] for path in removed]
            entries = read_entries(store, paths, _names_in(name))
            key = entry.prefix + name
            new = _with_entries(data, formats.loads(name, data, key=key), key, name, entries, left)
            # Parsed metadata is compared, because writers serialise equal entries differently.
            if block_of(Entry(entry.path, {name: data})) != block_of(Entry(entry.path, {name: new})):
                document = os.path.join(store.root, *(entry.prefix + name).split("/"))
                warn(
                    f"the consolidated metadata in {document} is stale: it lacks changes to "
                    f"{os.path.join(store.root, inside)}, which was opened by itself. Open the node through {store.root}, "
                    'consolidate again, or set consolidated.above_root to "update" or "ignore"',
                    ZarrRuntimeWarning,
                )


def _holds_group(directory: str) -> bool:
    return os.path.isfile(os.path.join(directory, "zarr.json")) or os.path.isfile(os.path.join(directory, ".zgroup"))


async def _follow_steps(store: Store, paths: Sequence[str], names: Sequence[str], removed: Sequence[str]) -> None:
    paths = [path for path in paths if not is_staged(path)]
    removed = [path for path in removed if not is_staged(path)]
    _note_changes(store, paths, removed)
    groups = {group for path in paths for group in ancestors(path)}
    above = dict.fromkeys(place for path in paths for place in [*ancestors(path), path])
    # v3 consolidated metadata has no entry for the group itself.
    places = [(place, name) for place in above for name in names if place in groups or name == V2_KEY]
    if not places:
        return
    for place in above:
        store._invalidate_cached(prefix_of(place), formats.DOCUMENT_NAMES.__contains__)
    answers = await store_call(store, "fetch", [Fetch(prefix_of(place) + name) for place, name in places])
    for place, name in _holding(places, answers):
        prefix = prefix_of(place)
        inside = [path for path in paths if path.startswith(prefix) or (path == place and name == V2_KEY)]
        if not inside:
            continue
        left = [path[len(prefix) :] for path in removed if path != place]
        await _follow_in_steps(store, prefix + name, name, inside, left)


async def _follow_in_steps(store: Store, key: str, name: str, paths: Sequence[str], removed: Sequence[str]) -> None:
    """Replace the entries of the nodes at `paths` in the document at `key` by their stored documents.

    Groups above them that have no entry, because an earlier update failed, get theirs: without it readers find no member.
    """
    read: list[Entry] = []
    prefix, own = key[: -len(name)], {*paths}
    above = {group[len(prefix) :] for path in paths for group in ancestors(path) if group and group.startswith(prefix)}

    def change(old: Buffer | None) -> Buffer | None:
        if old is None:
            read.clear()
            return None
        document = formats.loads(name, old, key=key)
        groups = {prefix + group for group in consolidated.unlisted(name, document, above)} - own
        found = read_entries(store, [*paths, *sorted(groups)], _names_in(name))
        read[:] = [entry for entry in found if entry.path in own or _format_in(name) in entry.formats]
        return _with_entries(old, document, key, name, read, removed)

    while True:
        await update_settled_steps(store, key, change)
        if not read or isinstance(store, Lock) or not isinstance(store, ConditionalSet):
            return
        # Versions that are hashes of values do not tell that another client has changed a node, and has found these entries
        # already as it would leave them.
        again = await read_entries_steps(store, [entry.path for entry in read], _names_in(name))
        if _values_but(key, again) == _values_but(key, read):
            return


def _values_but(key: str, entries: Sequence[Entry]) -> dict[str, Buffer]:
    """Collect the documents of `entries` but the one at `key`."""
    values = {entry.prefix + name: value for entry in entries for name, value in entry.values.items()}
    values.pop(key, None)
    return values


def _format_in(name: str) -> ZarrFormat:
    """Return the format of the nodes that have entries in the document called `name`."""
    return 3 if name == "zarr.json" else 2


def _names_in(name: str) -> Sequence[str]:
    """Name the documents that have entries in the document called `name`."""
    return formats.KEYS[_format_in(name)].all


def _with_entries(
    old: Buffer, document: JSONObject, key: str, name: str, entries: Sequence[Entry], removed: Sequence[str]
) -> Buffer:
    """Replace the entries of nodes in the document at `key`, which is parsed from `old`, by the documents of `entries`."""
    zarr_format = _format_in(name)
    now = {
        entry.path[len(key) - len(name) :]: entry.documents(zarr_format) if zarr_format in entry.formats else {}
        for entry in entries
    }
    new = consolidated.with_entries(name, document, now, removed)
    return old if new is None else serialize.dumps({name: new})[name]
