"""Move a node, and copy the value of one key."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from functools import partial

from tessarr.core.asynchronous.sans_io import raise_if_cancelled, run_steps
from tessarr.core.claims import intents
from tessarr.core.claims.removals import Removal
from tessarr.core.stored import metadata_io, read_nodes
from tessarr.core.stored.consolidated import follow_change_steps, follow_changes
from tessarr.core.stored.shape_locks import (
    arrays_to_lock_steps,
    hold_node_steps,
    hold_shape_locks_steps,
    shape_lock,
)
from tessarr.core.stored.walk import read_entries, walk, walk_below_steps
from tessarr.core.stored.write_new import MAKE_NODES, create_document, formats_beside
from tessarr.errors import (
    BaseZarrError,
    ConflictError,
    ContainsArrayError,
    ContainsGroupError,
    CopyError,
    NodeNotFoundError,
    StaleConsolidatedError,
    TessarrError,
)
from tessarr.metadata import formats
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.base import Store, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import ConditionalSet, ExchangePrefixes, RenamePrefix
from tessarr.types import Buffer

_MOST_REPLACED = 3
"""How often `replace_node` replaces what other clients create at the place meanwhile."""


def copy_key(
    source: Store,
    key: str,
    dest: Store,
    new_key: str,
    dry_run: bool = False,
    *,
    overwrite: bool = True,
    keys: Container[str] = (),
) -> int:
    """Copy the value of one key. Returns the size of the value in bytes; with `dry_run` nothing is written.

    Without `overwrite` nothing may be at `new_key`, nor another node at its path, else `CopyError` is raised. `keys`: all that
    are copied.
    """
    raise_if_cancelled()
    value = source.get(key)
    if value is None:
        return 0
    _refuse_claimed(source, key, value)
    if not dry_run and not overwrite:
        beside = formats_beside(key, keys)
        if not create_document(dest, new_key, bytes(byte_view(value)), formats_in_the_way=beside):
            raise CopyError("another client has stored a value at the destination", store=dest.url, key=new_key)
    elif not dry_run:
        if new_key.rpartition("/")[2] in formats.DOCUMENT_NAMES:
            metadata_io.put_document(dest, new_key, value, overwrite=True)
        else:
            dest.set(new_key, value)
    return byte_view(value).nbytes


def documents_last(key: str) -> tuple[bool, int, bool, str]:
    """Order keys: chunks, then documents, those of members before those of their group, that which makes a node last.

    >>> sorted([".zgroup", "a/.zarray", "a/.zattrs", "a/0"], key=documents_last)
    ['a/0', 'a/.zattrs', 'a/.zarray', '.zgroup']
    """
    name = key.rpartition("/")[2]
    is_document = name in formats.DOCUMENT_NAMES
    return is_document, -key.count("/") if is_document else 0, name in MAKE_NODES, key


def take_back_copies(source: Store, dest: Store, made: Mapping[str, str]) -> None:
    """Remove the copies, by the keys of what was copied, unless another client has replaced them. Consolidated metadata, which
    another client may have updated meanwhile, gets what is there then."""
    for key, new_key in made.items():
        value = source.get(key)
        if value is not None:
            run_steps(metadata_io.remove_document_steps(dest, new_key, partial(_is_same_value, value)))
    places = [key.rpartition("/") for key in made.values()]
    follow_changes(dest, list(dict.fromkeys(path for path, _, name in places if name in formats.DOCUMENT_NAMES)))


def _is_same_value(one: Buffer, other: Buffer) -> bool:
    return byte_view(one) == byte_view(other)


def _refuse_claimed(store: Store, key: str, value: Buffer) -> None:
    if intents.intent_in(value, key) is not None:
        hint = "Wait until it has ended"
        raise ConflictError("a transaction is changing the document", store=store.url, key=key, hint=hint)


def move_node(store: Store, source: str, dest: str, *, above: bool = True) -> None:
    """Move a node and all nodes below. `above`: groups that are missing above `dest` are created.

    Where the store can rename a prefix (`RenamePrefix`), that is one step. Elsewhere every value is copied, then the old
    ones are removed. A change that another writer makes while they are copied is noticed by the versions of the values: the
    copies are removed, and the move fails. A later one is not noticed, nor one in a store without versions.

    Raises `NodeNotFoundError` when there is no node at `source`, `ContainsArrayError` or `ContainsGroupError` when there is one
    at `dest`, `BaseZarrError` for a move into itself, `ConflictError` when another writer changed the node meanwhile.
    """
    node = _require_source(store, source)
    if (dest + "/").startswith(source + "/"):
        raise BaseZarrError("a node cannot be moved into itself", path=f"/{source}", got=f"/{dest}")
    _require_free(store, dest)
    metadata_io.check_path(dest, node.zarr_format)
    if above:
        metadata_io.require_ancestors(store, dest, node.zarr_format)
    arrays = run_steps(arrays_to_lock_steps(store, source))
    run_steps(hold_shape_locks_steps(store, arrays, _move_locked_steps(store, source, dest)))
    for path in arrays if isinstance(store, RenamePrefix) else ():
        with shape_lock(store, dest + path[len(source) :]):  # a lock file may have moved too, and is removed here
            pass
    follow_changes(store, _moved(store, dest) if isinstance(node, GroupMetadata) else [dest])


def _moved(store: Store, dest: str) -> list[str]:
    """List the nodes at and below a group that has been moved to `dest`, where another client may have begun an array."""
    (top,) = read_entries(store, [dest])
    return [dest, *(entry.path for entry in run_steps(walk_below_steps(store, top, None)))]


async def _move_locked_steps(store: Store, source: str, dest: str) -> None:
    """Move the node while the locks of the shapes of its arrays are held."""
    old, new = prefix_of(source), prefix_of(dest)
    for has_waited in (False, True):
        if isinstance(store, RenamePrefix) and store.rename_prefix(old, new):
            await follow_change_steps(store, source, replaced=True)
            return
        if isinstance(store, RenamePrefix) and not has_waited:
            _await_creators(store, new)
        _require_source(store, source)
        _require_free(store, dest)
    _copy_all(store, old, new)
    await metadata_io.delete_locked_steps(store, source)


def _await_creators(store: Store, prefix: str) -> None:
    """Wait for clients that are creating a node under `prefix`: what they have begun there is in the way of a rename."""
    for name in sorted(MAKE_NODES):
        with store.lock(prefix + name):
            pass


def replace_node(
    store: Store,
    new: str,
    path: str,
    *,
    old_is_away: Callable[[], object] = lambda: None,
    failed: Callable[[], object] = lambda: None,
    owner: str | None = None,
) -> None:
    """Put the node at `new`, of which no other client knows, in the place of what is at `path`, which is removed last.

    One step where the store can exchange two prefixes (`ExchangePrefixes`). Where it can only rename, the old node is renamed
    to a hidden name first, so that nothing is at `path` between two renames. Elsewhere it is removed first, and `ConflictError`
    raised where another client is removing or replacing it, but for one with the same `owner`. What other clients create at
    `path` meanwhile is replaced, too, but not more often than `_MOST_REPLACED` times. `old_is_away` is called between two
    steps, where there are two, and `failed` after an error of the second.
    """
    for left in reversed(range(_MOST_REPLACED)):
        if exchange_nodes(store, new, path):
            metadata_io.delete_node(store, new)
            return
        try:
            move_over(store, new, path, old_is_away, owner)
            return
        except BaseException as error:
            failed()
            if not left or not isinstance(error, ContainsArrayError | ContainsGroupError | CopyError):
                raise


def exchange_nodes(store: Store, new: str, path: str) -> bool:
    """Exchange the node at `new`, of which no other client knows, and what is at `path`, in one step; ``False``: nothing is
    done, because the store cannot, or nothing is there."""
    if not isinstance(store, ExchangePrefixes):
        return False
    _require_source(store, new)
    one, other = prefix_of(new), prefix_of(path)
    arrays = run_steps(arrays_to_lock_steps(store, path))

    async def steps() -> bool:
        return store.exchange_prefixes(one, other)

    if not run_steps(hold_shape_locks_steps(store, arrays, steps())):
        return False
    follow_replaced(store, path)
    return True


def follow_replaced(store: Store, path: str) -> None:
    """Update consolidated metadata above the node at `path`, which has replaced another one."""
    below = [entry.path for entry in walk(store, path)]
    run_steps(follow_change_steps(store, path, replaced=True, below=below))


def move_over(store: Store, new: str, path: str, old_is_away: Callable[[], object], owner: str | None = None) -> None:
    """Remove the node at `path`, in a file system by a rename at first, call `old_is_away`, and move that at `new` there."""
    if not isinstance(store, RenamePrefix):
        _copy_over(store, new, path, old_is_away, Removal(store, path, owner))
        return
    old = place_of_replaced(new)
    if read_nodes.read_node(store, path) is not None:
        metadata_io.delete_node(store, old)  # of a client that was stopped; another one has created a node since
    with suppress(NodeNotFoundError):  # another client has removed it
        move_node(store, path, old, above=False)
    try:
        old_is_away()
        _clear_way(store, path)
        move_node(store, new, path, above=False)
    except BaseException:
        with suppress(TessarrError):
            _clear_way(store, path)
            move_node(store, old, path, above=False)
        raise
    metadata_io.delete_node(store, old)


def _copy_over(store: Store, new: str, path: str, old_is_away: Callable[[], object], removal: Removal) -> None:
    """Remove the node at `path`, and copy that at `new` there, under the claim of one removal: no other client removes or
    creates a node there meanwhile. Then remove that at `new`."""

    async def replace() -> None:
        async with removal:
            await removal.clear_steps()
            with suppress(StaleConsolidatedError):  # they are updated again at the end
                await follow_change_steps(store, path, replaced=True)
            old_is_away()
            _require_source(store, new)
            _copy_all(store, prefix_of(new), prefix_of(path), removal)
            await removal.end_steps()

    run_steps(hold_node_steps(store, path, replace()))
    metadata_io.delete_node(store, new)
    follow_replaced(store, path)


def _clear_way(store: Store, path: str) -> None:
    """Remove chunks that a client has stored since the array was moved away: a directory is renamed to a free name only."""
    if read_nodes.read_node(store, path) is None:
        metadata_io.delete_node(store, path)


def place_of_replaced(new: str) -> str:
    """Return where the node is kept that the one at `new` replaces, in stores that can only rename.

    >>> place_of_replaced("g/.a-0123abcd.partial")
    'g/.a-0123abcd.old.partial'
    """
    return f"{new.removesuffix('.partial')}.old.partial"


def _require_source(store: Store, source: str) -> read_nodes.NodeMetadata:
    node = read_nodes.read_node(store, source)
    if node is None:
        raise NodeNotFoundError("no node to move", store=store.url, path=f"/{source}")
    return node


def _require_free(store: Store, dest: str) -> None:
    present = read_nodes.read_node(store, dest)
    if present is not None:
        way = ContainsGroupError if isinstance(present, GroupMetadata) else ContainsArrayError
        raise way("a node exists at the destination", store=store.url, path=f"/{dest}")


def _copy_all(store: Store, old: str, new: str, removal: Removal | None = None) -> None:
    """Copy the values under `old` to `new`, the node's own documents last. Remove the copies, and raise `ConflictError`, when a
    value was changed, added or removed meanwhile. Any other error removes them unless the node is complete at `new`.

    `removal`: what was at `new` before, the claim of which keeps others from creating a node there.
    """
    version = store.version if isinstance(store, ConditionalSet) else None
    own = {old + name for name in formats.DOCUMENT_NAMES}
    copied: dict[str, Version | None] = {}
    made: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    try:
        keys = {*store.list_prefix(old)}
        for key in sorted(keys, key=documents_last):
            copied[key] = None if version is None else version(key)
            target = new + key[len(old) :]
            doubtful = {key: target}
            if removal is not None:
                run_steps(removal.keep_steps(always=key in own))
            if key not in own:
                copy_key(store, key, store, target, overwrite=False, keys=keys)
            elif (value := store.get(key)) is not None:
                _refuse_claimed(store, key, value)
                if not _put_last(store, target, bytes(byte_view(value)), formats_beside(key, keys), removal):
                    what = "another writer has created a node at the destination"
                    raise ConflictError(what, store=store.url, key=target)
            made[key] = target
        if version is not None and {key: version(key) for key in store.list_prefix(old)} != copied:
            hint = "Nothing was moved; try again"
            raise ConflictError("the node was changed while it was copied", store=store.url, key=old, hint=hint)
    except (ConflictError, CopyError):
        take_back_copies(store, store, made)
        raise
    except BaseException:
        # A write that failed may have been carried out. With the last document at the destination the copy is complete.
        if not any(store.exists(new + name) for name in MAKE_NODES):
            take_back_copies(store, store, {**made, **doubtful})
        raise


def _put_last(store: Store, key: str, data: bytes, beside: Sequence[int], removal: Removal | None) -> bool:
    """Store a document of a node whose chunks are there, where there is none. Returns whether it is stored."""
    if removal is None:
        return create_document(store, key, data, formats_in_the_way=beside)
    return run_steps(removal.put_steps(key, data))
