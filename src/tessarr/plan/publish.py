"""How the result of a plan becomes visible: documents last, then in the place of what was there.

In a file system tasks write beside the place of the result. When they are done the place of work is *sealed*: renamed, so that
no client that goes on, or was stopped and is woken up, can write there. What killed clients were writing is then removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from math import inf
from operator import ge

from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.claims.claimed_places import (
    claim_place,
    has_claim,
    is_claimed,
    mark_place,
    refuse_node,
    release_place,
)
from tessarr.core.claims.one_copy import one_copy
from tessarr.core.creation.shorthands import consolidate_metadata
from tessarr.core.stored import metadata_io
from tessarr.core.stored.consolidated import follow_changes, follow_directory
from tessarr.core.stored.create_nodes import describe_made, describes
from tessarr.core.stored.move import follow_replaced, move_node, place_of_replaced, replace_node
from tessarr.core.stored.read_nodes import NodeMetadata
from tessarr.core.stored.walk import Entry, read_entries, walk
from tessarr.core.stored.write_new import remove_made_steps
from tessarr.engine.jobs import Jobs
from tessarr.errors import ConflictError, ContainsArrayError, ContainsGroupError
from tessarr.metadata import formats, serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.plan.manifest import Manifest, Place
from tessarr.plan.markers import DOCUMENTED, Milestones
from tessarr.stores.base import Store
from tessarr.stores.functions import is_in_memory
from tessarr.stores.local.store import LocalStore
from tessarr.stores.local.tree import remove_leftovers
from tessarr.stores.path import ancestors, join, prefix_of
from tessarr.stores.protocols import ExchangePrefixes, Lock, Remote
from tessarr.stores.url import StoreLike, store_from
from tessarr.tools.staging import check_free, local_path, old_of, put_in_place

_REQUESTS = 16
"""Documents in flight to a remote store."""


def reopenable_url(store: Store) -> str:
    """Return the URL by which another process opens `store`; "" for a store that only this process has."""
    return "" if is_in_memory(store) else store.url


def options_at(place: StoreLike, storage_options: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Return the options that are given for all places of a plan; ``None`` for a local one, which takes none."""
    return None if local_path(place) is not None else storage_options


def check_writable(nodes: Iterable[NodeMetadata]) -> None:
    """Raise the error of documents that cannot be written, such as `ValueError` for NaN in attributes: `publish` would."""
    for node in nodes:
        serialize.dumps(node.documents())


def begin(manifest: Manifest, store: Store, path: str, *, resumed: bool) -> None:
    """Look at the target of a plan before its first task, and claim the place where tasks write.

    May be repeated. `resumed`: some tasks are done. Raises `ConflictError` where another client has made something at the
    target, or has claimed it, or has removed what these tasks wrote.
    """
    target, work = manifest.target, manifest.work
    if target == work:
        if resumed and not has_claim(store, path):
            raise _removed(store, path)
        claim_place(store, path, manifest.id, overwrite=manifest.overwrite)
        return
    if not manifest.overwrite and target is not None and target.path:
        refuse_node(store, target.path)
    elif not manifest.overwrite and target is not None:
        check_free(target.url)
    begin_beside(manifest, store, path, resumed=resumed)


def begin_beside(manifest: Manifest, store: Store, path: str, *, resumed: bool) -> None:
    """Claim a place of work that only this plan has; see `begin`."""
    if not resumed:
        mark_place(store, path, manifest.id)
    elif not is_claimed(store, path, manifest.id):
        sealed, at = store, place_of_sealed(store, path)  # by another client, which finishes the plan
        if not path and isinstance(store, LocalStore):
            sealed, at = LocalStore(sealed_name(str(store.root))), ""
        if not is_claimed(sealed, at, manifest.id):
            raise _removed(store, path)


def check_complete(manifest: Manifest, store: Store, path: str) -> None:
    """Raise `ConflictError` where the place in which the tasks of a plan wrote was removed since the first of them."""
    if manifest.tasks and not is_claimed(store, path, manifest.id):
        raise _removed(store, path)


def _removed(store: Store, path: str) -> ConflictError:
    return ConflictError(
        "another client has removed or replaced what the tasks wrote", store=store.url, path=f"/{path}",
        hint="Make the plan again",
    )  # fmt: skip


def publish(manifest: Manifest, store: Store, path: str, milestones: Milestones) -> None:
    """Write the documents of a plan whose tasks are done, and put its result in place. May be stopped, and repeated."""
    target, work = manifest.target, manifest.work
    assert target is not None
    assert work is not None
    whole = not work.path and target != work  # a directory of its own
    if whole and isinstance(store, LocalStore):
        store = LocalStore(sealed_name(work.url), durable=store.durable)
    if not milestones.reached(DOCUMENTED):
        is_first = False
        if whole:
            seal_directory(work.url)
        elif target != work:
            path = seal(store, path)
        elif not milestones.reached("documenting"):
            check_complete(manifest, store, path)
            refuse_node(store, path)
            milestones.reach("documenting")
            is_first = milestones.are_exclusive()
        if target != work:
            check_complete(manifest, store, path)
        _write(manifest, store, path, is_first=is_first)
        milestones.reach(DOCUMENTED)
    if whole:
        if is_node(store, ""):
            release_place(store, "", manifest.id)
            store.close()
            put_in_place(sealed_name(work.url), target.url, old_of(work.url), overwrite=manifest.overwrite)
        follow_directory(target.url)
    elif target != work:
        at = place_of_sealed(store, work.path)
        put_node_in_place(manifest, store, at, target.path, milestones)
    else:
        release_place(store, path, manifest.id)
    if target.path:
        _describe(store, target.path, _nodes_at(manifest, target.path))


def _nodes_at(manifest: Manifest, path: str) -> dict[str, NodeMetadata]:
    """Return the metadata of the nodes of a plan, by their paths where they are below `path`."""
    return {join(path, node.path): node.metadata for node in manifest.nodes}


def _describe(store: Store, top: str, made: Mapping[str, NodeMetadata]) -> None:
    """Describe in Zarr v3 too the nodes of v2 that were made at `top` and below, if the group above was migrated meanwhile."""
    if top in made and made[top].zarr_format == 2 and 3 in read_entries(store, [top.rpartition("/")[0]])[0].formats:
        describe_made(store, made)


def _write(manifest: Manifest, store: Store, path: str, *, is_first: bool) -> None:
    """Remove intermediate arrays and the table of files, and write the documents; `is_first`: none is there from this plan."""
    if any(node.strategy is not None and node.strategy.intermediates for node in manifest.nodes):
        store.delete_prefix(prefix_of(join(path, manifest.intermediates)))
    if manifest.kind != "zarr":
        store.delete_prefix(prefix_of(join(path, manifest.files)))
    target = manifest.target
    replaced = manifest.overwrite and target is not None and target != manifest.work and is_node(store, target.path)
    write_documents(store, _nodes_at(manifest, path), above=not replaced, is_first=is_first)
    if manifest.options.get("consolidate") and isinstance(manifest.nodes[0].metadata, GroupMetadata):
        consolidate_metadata(store, path=path or None)


def sealed_name(work: str) -> str:
    """Return the name that a place of work, ``….partial``, gets when all tasks are done."""
    return f"{work.removesuffix('.partial')}.sealed.partial"


def place_of_sealed(store: Store, work: str) -> str:
    """Return where the node at `work` is when it is sealed: where it was, unless it is in a file system."""
    return sealed_name(work) if isinstance(store, LocalStore) else work


def seal(store: Store, work: str) -> str:
    """Seal the node at `work`, whose tasks are done, and return where it is then. May be stopped, and repeated."""
    if isinstance(store, LocalStore):
        sealed = sealed_name(work)
        store.rename_prefix(prefix_of(work), prefix_of(sealed))  # nothing is done where it was sealed before
        _sweep(os.path.join(store.root, sealed))
        return sealed
    return work


def seal_directory(work: str) -> None:
    """Seal the directory `work`, whose tasks are done. May be stopped, and repeated."""
    sealed = sealed_name(work)
    if os.path.isdir(work) and not os.path.isdir(sealed):
        os.rename(work, sealed)
    _sweep(sealed)


def _sweep(folder: str) -> None:
    """Remove what clients were writing in a sealed directory: none of them can rename it to a value any more."""
    remove_leftovers(folder, -inf, 0)


def without_documents(manifest: Manifest, store: Store, work: str) -> list[str]:
    """List the chunks of the nodes of a plan at `work` that have no documents yet, and those of intermediate arrays."""
    found = list(store.list_prefix(prefix_of(join(work, manifest.intermediates))))
    nodes = _nodes_at(manifest, work)
    for entry in read_entries(store, list(nodes)):
        metadata = nodes[entry.path]
        if isinstance(metadata, ArrayMetadata) and entry.kind is None:
            decode, ndim = metadata.chunk_key_encoding.decode, len(metadata.shape)
            keys = store.list_prefix(entry.prefix)
            found += [key for key in keys if decode(key[len(entry.prefix) :], ndim) is not None]
    return found


def opened_work(
    work: Place, storage_options: Mapping[str, object] | None, written: tuple[Store, str] | None
) -> tuple[Store, str] | None:
    """Open the place in which tasks write; `written` is it where only this process has it."""
    if not work.url:
        return written
    store, path = store_from(work.url, mode="r+", storage_options=options_at(work.url, storage_options))
    return store, join(path, work.path)


def discard(
    manifest: Manifest, storage_options: Mapping[str, object] | None = None, written: tuple[Store, str] | None = None
) -> None:
    """Remove what tasks wrote: of what is in the place of the result, chunks of nodes without documents, if the plan has
    claimed it. `written`: as for `opened_work`."""
    target, work = manifest.target, manifest.work
    if target is None or work is None:
        return
    if target.path or target == work:
        if (opened := opened_work(work, storage_options, written)) is None:
            return
        store, here = opened
        below = (manifest.intermediates, manifest.files) if target == work else ("",)
        if target == work and is_claimed(store, here, manifest.id):
            store.delete_many(without_documents(manifest, store, here))
        for name in below:
            store.delete_prefix(prefix_of(join(here, name)))
        if target == work:
            release_place(store, here, manifest.id)
        if target != work and isinstance(store, LocalStore):
            store.delete_prefix(prefix_of(sealed_name(here)))
    else:
        import shutil

        for left in (work.url, sealed_name(work.url), old_of(work.url)):
            shutil.rmtree(left, ignore_errors=True)


def write_documents(
    store: Store, nodes: Mapping[str, NodeMetadata], *, above: bool = True, is_first: bool = False
) -> None:
    """Write the documents of nodes, by path, of which some may have been written before. May be repeated.

    Those of members come before that of their group, so that no reader finds a group with some of its members. `above`: groups
    that are missing above the nodes are created. `is_first`: none has been written before. Chunks beyond the end of an array,
    which a stopped plan has left there, are removed before: the array may grow. Raises `ConflictError` for a document that
    describes another node, after those that were written now are removed.
    """
    entries = {entry.path: entry for entry in read_entries(store, list(nodes))}
    left = [path for path, entry in entries.items() if not entry.formats]
    groups = {group for path in left for group in ancestors(path)}
    for path, entry in entries.items():
        if entry.formats and (path in groups or _is_bare(entry, nodes[path]) or not describes(entry, nodes[path])):
            raise _another_node(store, path)
        if not entry.formats:  # of a node whose creation was stopped: in v2 attributes come first
            store.delete_many(entry.prefix + name for name in entry.values)
    for path in left if not isinstance(store, LocalStore) else ():
        _remove_beyond(store, path, nodes[path])
    top = next(iter(nodes), "")
    if top in nodes and above:
        metadata_io.require_ancestors(store, top, nodes[top].zarr_format)

    made: dict[str, dict[str, bytes]] = {path: {} for path in sorted(left, key=_depth, reverse=True)}
    try:
        _put_documents(store, nodes, made, is_first=is_first)
    except ConflictError:  # nor are members left below another node, or attributes beside one
        documents = {key: data for found in reversed(made.values()) for key, data in found.items()}
        run_steps(remove_made_steps(store, documents, top))
        raise
    follow_changes(store, list(nodes))  # consolidated metadata may lack also those that were there


def _put_documents(
    store: Store, nodes: Mapping[str, NodeMetadata], made: Mapping[str, dict[str, bytes]], *, is_first: bool
) -> None:
    """Write the documents of nodes, those at the paths of `made` in that order, and note there which were created.

    One that is there already may be that of another client though it is equal, as those of two groups are: who has created it
    removes it when it finds the claim of the plan.
    """

    def put(path: str) -> None:
        for key, data in metadata_io.keyed_documents(path, nodes[path].documents()).items():
            if metadata_io.put_document(store, key, data, overwrite=False):
                made[path][key] = data
            elif is_first or bytes(store.get(key) or b"") != data:
                raise _another_node(store, path)

    with Jobs(_REQUESTS if isinstance(store, Remote) else 1) as jobs:
        for _, level in groupby(made, _depth):
            for _ in jobs.map(put, level):
                pass
    for entry in read_entries(store, list(nodes)):
        if not describes(entry, nodes[entry.path]):
            raise _another_node(store, entry.path)


def _is_bare(entry: Entry, metadata: NodeMetadata) -> bool:
    """Whether a stored group has no attributes, as one that another client has created above its node; `metadata` has some."""
    if not isinstance(metadata, GroupMetadata) or not metadata.attributes:
        return False
    attributes = formats.KEYS[metadata.zarr_format].attributes
    name = attributes or formats.KEYS[3].array
    stored = entry.json(name) if name in entry.values else {}
    return not (stored if attributes else stored.get("attributes"))


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def _remove_beyond(store: Store, path: str, metadata: NodeMetadata) -> None:
    """Remove the stored chunks at a path that an array with `metadata` does not have, unless it has been created meanwhile."""
    if not isinstance(metadata, ArrayMetadata):
        return
    decode, prefix = metadata.chunk_key_encoding.decode, prefix_of(path)
    counts = [axis.nchunks for axis in metadata.chunk_grid.axes(metadata.shape)]
    beyond = [
        key
        for key in store.list_prefix(prefix)
        if (coords := decode(key[len(prefix) :], len(counts))) is not None and any(map(ge, coords, counts))
    ]
    if beyond and not is_node(store, path):
        store.delete_many(beyond)


def _another_node(store: Store, path: str) -> ConflictError:
    hint = "Remove it or move it away, then finish the plan again, or make the plan again with another target"
    return ConflictError("another client has created a node at the target", store=store.url, path=f"/{path}", hint=hint)


_CHUNK = re.compile(r"c|(c\.)?\d+(\.\d+)*")


def put_node_in_place(
    manifest: Manifest, store: Store, work: str, target: str, milestones: Milestones, cleared: str = "cleared"
) -> None:
    """Put the node at `work`, claimed by the plan, in the place of the one at `target`, and release the claim.

    May be stopped, and repeated; `cleared` names a step of it. Where two nodes are exchanged the claim goes with its node, and
    so tells which of them is new. Elsewhere it is released first, and a node at `target` with the documents of the new one has
    been moved whole: documents are moved last. Without `overwrite` there may be nothing at `target` but chunks that a writer
    has left without a document, else `ConflictError` is raised.
    """
    plan = manifest.id
    claimed, moved = is_claimed(store, work, plan), is_claimed(store, target, plan)
    began = milestones.reached(cleared)
    if manifest.tasks and not (claimed or moved or began):
        raise _removed(store, work)
    if moved or (began and not claimed and _has_moved(store, work, target)):
        metadata_io.delete_node(store, work)
        metadata_io.delete_node(store, place_of_replaced(work))
        follow_replaced(store, target)
    elif manifest.overwrite:
        _replace(store, work, target, milestones, plan, cleared)
    else:
        with _one_copy(store, target):  # which may have stored chunks, and no document yet
            if is_node(store, work):
                _clear_chunks(store, target)
            milestones.reach(cleared)
            release_place(store, work, plan)
            try:
                move_node(store, work, target)
            except (ContainsArrayError, ContainsGroupError) as error:
                raise _another_node(store, target) from error
    milestones.reach(cleared)
    release_place(store, target, plan)


def _one_copy(store: Store, target: str) -> AbstractContextManager[None]:
    """One copy at a time where that is a lock: elsewhere it is a claim, which a plan that is killed would leave."""
    return one_copy(store, target) if isinstance(store, Lock) else nullcontext()


def _replace(store: Store, work: str, target: str, milestones: Milestones, plan: str, cleared: str) -> None:
    """Replace the node at `target`, as `replace_node` does, so that what was done is known when it is stopped."""

    def old_is_away() -> None:
        milestones.reach(cleared)
        release_place(store, work, plan)

    def claim() -> None:
        if is_node(store, work):  # what is at the target is not the new node
            mark_place(store, work, plan)

    with _one_copy(store, target):
        if isinstance(store, ExchangePrefixes):
            claim()
        replace_node(store, work, target, old_is_away=old_is_away, failed=claim, owner=plan)


def _has_moved(store: Store, work: str, target: str) -> bool:
    """Whether there is a node at `target` with all documents of that at `work`, which may have been removed in part."""
    if not is_node(store, target):
        return False
    left, there = ({entry.path[len(at) :]: entry.values for entry in walk(store, at)} for at in (work, target))
    return all(
        there.get(path, {}).get(name) == value for path, values in left.items() for name, value in values.items()
    )


def _clear_chunks(store: Store, target: str) -> None:
    """Remove chunks without a document. Raises `ConflictError` where there is more, or a node."""
    there = list(store.list_prefix(prefix_of(target)))
    others = any(_CHUNK.fullmatch(key.rpartition("/")[2]) is None for key in there)
    if others or is_node(store, target):  # which may have been created while keys were listed
        raise _another_node(store, target)
    store.delete_many(there)


def is_node(store: Store, path: str) -> bool:
    """Return whether there is a node."""
    return bool(read_entries(store, [path])[0].formats)
