"""Create, change and delete the metadata documents of a node in a store.

This module is the only writer of metadata documents, so that it alone enforces the rules: nothing is deleted before its
replacement is valid and staged; documents are updated under the store's lock, or by compare-and-swap, and only in the members
concerned; ancestors exist. Three modules are parts of it: `write_new` creates the documents of new nodes, `consolidated`
updates the copies of documents in consolidated metadata, `removals` replaces nodes where that takes several requests.
`tests/architecture/test_one_place.py` finds any other writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from tessarr.core import open_transactions
from tessarr.core.asynchronous.sans_io import Call, gather_calls, run_steps, store_call
from tessarr.core.claims import removals
from tessarr.core.claims.settle import swap_settled_steps, update_settled_steps
from tessarr.core.stored.consolidated import HOLDERS, follow_change_steps
from tessarr.core.stored.read_nodes import NodeMetadata
from tessarr.core.stored.shape_locks import hold_node_steps
from tessarr.core.stored.walk import Entry, is_staged, read_entries_steps
from tessarr.core.stored.write_new import (
    attributes_to_look_for,
    chunk_layout,
    may_be_beside,
    refuse_mixing,
    remove_old_attributes_steps,
    write_new_steps,
)
from tessarr.errors import ContainsArrayError, ContainsGroupError, StaleNodeError, TessarrError
from tessarr.metadata import formats, serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.consolidated import V2_KEY
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Fetch, Store
from tessarr.stores.path import ancestors, check_node_name, prefix_of
from tessarr.stores.protocols import List, ReplacePrefix
from tessarr.types import JSON, Buffer, ZarrFormat

T = TypeVar("T")


def check_path(path: str, zarr_format: ZarrFormat) -> None:
    """Raise `NodeNameError` unless every name on `path` is allowed for a new node."""
    for name in path.split("/") if path else ():
        check_node_name(name, zarr_format)


def create_node(
    store: Store, path: str, metadata: NodeMetadata, *, overwrite: bool = False, newer: bool = False
) -> None:
    """Write a new node, and missing groups above the node. See `create_documents_steps`."""
    run_steps(create_node_steps(store, path, metadata, overwrite=overwrite, newer=newer))


async def create_node_steps(
    store: Store, path: str, metadata: NodeMetadata, *, overwrite: bool = False, keep: bool = False, newer: bool = False
) -> None:
    """Write a new node, and missing groups above the node. See `create_documents_steps`."""
    check_path(path, metadata.zarr_format)
    serialize.warn_of_unstable_array(metadata)
    documents = keyed_documents(path, metadata.documents())
    number = metadata.zarr_format
    await create_documents_steps(store, path, number, documents, overwrite=overwrite, keep=keep, newer=newer)


async def create_documents_steps(
    store: Store,
    path: str,
    zarr_format: ZarrFormat,
    documents: dict[str, bytes],
    *,
    overwrite: bool,
    keep: bool = False,
    newer: bool = False,
) -> None:
    """Write a new node, or a hierarchy of new nodes, and missing groups above `path`.

    `documents`: full key → value, in the order of writing: the document that makes the node at `path` exist is the last one.
    With `overwrite` an existing node, and all below it, is replaced once the new documents are staged. Where there
    is none, nothing is deleted, unless ``zarr_python.overwrite_all`` is set. With `keep` an existing array gets the new
    documents, and its chunks stay. With the setting ``zarr_python.both_formats`` a node of the other format may stay beside
    the new one (`may_be_beside`). With `newer` the caller describes the node in a newer format of the group above, too.

    Raises `ContainsArrayError` or `ContainsGroupError` when another node exists at `path` and not `overwrite`, and
    `MixedFormatsError` for a node that is not found from the group above.
    """
    store._check_writable(path)
    open_transactions.refuse_outside(store, path)
    attributes = attributes_to_look_for(path, documents)
    entries = await _read_entries_steps(store, path, attributes)
    kinds = {entry.path: entry.kind for entry in entries}
    existing = kinds[path]
    beside = existing is not None and not overwrite and may_be_beside(entries[-1], zarr_format, documents)
    existing = None if beside else existing
    if existing is not None and not overwrite and not (keep and existing == "array"):
        raise occupied(store, path, existing)
    refuse_mixing(store, path, zarr_format, entries, newer=newer)
    made, _ = await _create_ancestors_steps(store, path, zarr_format, kinds)
    clears = overwrite and store.supports_deletes and settings.get("zarr_python.overwrite_all")
    if overwrite and (existing is not None or clears):
        replacing = _replace_steps(store, path, documents, was_group=existing == "group")
        await hold_node_steps(store, path, replacing, entries[-1])
    else:
        ways, is_one = (zarr_format,) if beside else (3, 2), existing is not None
        other = await write_new_steps(store, path, documents, replace=is_one, above=made, formats_in_the_way=ways)
        if other is not None:
            if not overwrite:
                raise occupied(store, other, (await read_kinds_steps(store, other))[other])
            await hold_node_steps(store, path, _replace_steps(store, path, documents, was_group=False))
        else:
            await remove_old_attributes_steps(store, entries[-1], attributes)
    below = dict.fromkeys(key.rpartition("/")[0] for key in reversed(documents))
    names = HOLDERS if overwrite or keep else _holders_of(zarr_format)
    await follow_change_steps(store, path, names=names, replaced=not keep, below=[*made, *below])


async def _replace_steps(store: Store, path: str, documents: dict[str, bytes], *, was_group: bool) -> None:
    if _takes_several_requests(store, path):
        await removals.replace_steps(store, path, documents, was_group=was_group)
    else:
        await store_call(store, "replace_prefix", prefix_of(path), documents)


def _takes_several_requests(store: Store, path: str) -> bool:
    """Whether other clients can come between the removal of a document and that of the chunks at `path`."""
    return (
        isinstance(store, List)
        and not isinstance(store, ReplacePrefix)
        and not open_transactions.is_overlay(store)
        and not is_staged(path)
    )


def _holders_of(zarr_format: ZarrFormat) -> tuple[str]:
    """Name the document of a group that may hold consolidated metadata, which describes nodes of its own format only."""
    return (formats.KEYS[3].array,) if zarr_format == 3 else (V2_KEY,)


def occupied(store: Store, path: str, kind: str | None) -> TessarrError:
    what = {"array": "an array", "group": "a group"}.get(kind or "", "what another writer is creating or removing")
    return _contains_error(kind or "group")(
        f"path '/{path}' contains {what}",
        store=store.url,
        path=f"/{path}",
        hint="Open it, choose another path, or replace it with overwrite=True (mode='w')"
        if kind
        else "If no other writer is there, one was killed: create the node with overwrite=True",
    )


async def read_kinds_steps(store: Store, path: str) -> dict[str, str | None]:
    """Read what is at `path` and above, in one request: per path "array" or "group" when any format has a document there, even
    one that cannot be parsed."""
    return {entry.path: entry.kind for entry in await _read_entries_steps(store, path)}


async def _read_entries_steps(store: Store, path: str, further: Sequence[str] = ()) -> list[Entry]:
    names = ("zarr.json", ".zarray", ".zgroup", "meta", *further)
    # The claim of a transaction is looked for after a document is created.
    return await read_entries_steps(store, [*ancestors(path), path], names, claims=False)


def keyed_documents(path: str, documents: Mapping[str, Any]) -> dict[str, bytes]:
    """Serialise the documents of the node at `path`: full key → bytes, in the order of writing."""
    prefix = prefix_of(path)
    data = serialize.dumps(documents)
    return {prefix + name: data[name] for name in reversed(data)}


def replace_documents(store: Store, documents: Iterable[tuple[str, Buffer]]) -> list[str]:
    """Write documents (full key, value) in the given order. Returns the keys.

    If a write fails, or `documents` raises, the previous values are restored.
    """
    before: dict[str, Buffer | None] = {}
    try:
        for key, data in documents:
            before[key] = store.get(key)
            store.set(key, data)
    except BaseException:
        for key, old in reversed(before.items()):
            if old is None:
                store.delete(key)
            else:
                store.set(key, old)
        raise
    return list(before)


def put_document(store: Store, key: str, data: Buffer, *, overwrite: bool) -> bool:
    """Write the document at `key` (full); without `overwrite` only where there is none. Returns whether it was written."""
    return run_steps(put_document_steps(store, key, data, overwrite=overwrite))


async def put_document_steps(store: Store, key: str, data: Buffer, *, overwrite: bool) -> bool:
    """Write the document at `key` as `put_document` does."""
    if not overwrite:
        return bool(await store_call(store, "set_if_not_exists", key, data))
    # In its lock, so that a transaction that is being committed, and has found another document there, comes first.
    await update_settled_steps(store, key, lambda _: data)
    return True


def swap_document(store: Store, key: str, expected: Buffer | None, new: Buffer | None) -> None:
    """Replace the document at `key` if it is `expected`; ``None`` stands for no document."""
    run_steps(swap_settled_steps(store, key, expected, new))


async def remove_document_steps(store: Store, key: str, is_one: Callable[[Buffer], bool]) -> None:
    """Remove the document at `key` if ``is_one(document)``, which may be called several times."""
    await update_settled_steps(store, key, lambda stored: None if stored is None or is_one(stored) else stored)


def correct_document(store: Store, key: str, change: Callable[[Buffer], Buffer | None]) -> None:
    """Replace the document at `key` by ``change(document)`` in one update. ``None`` leaves the document unchanged.

    `change` may be called several times. A document that another writer has deleted stays deleted.
    """
    run_steps(update_settled_steps(store, key, lambda stored: None if stored is None else change(stored) or stored))


def _contains_error(kind: str) -> type[TessarrError]:
    return ContainsArrayError if kind == "array" else ContainsGroupError


def require_ancestors(store: Store, path: str, zarr_format: ZarrFormat) -> list[str]:
    """Create the missing groups above `path`; existing groups are not written. Returns those that this call has created.

    Raises `ContainsArrayError` when a node above `path` is an array.
    """

    async def steps() -> list[str]:
        missing, own = await _create_ancestors_steps(store, path, zarr_format, await read_kinds_steps(store, path))
        if missing:
            await follow_change_steps(store, path, below=missing)
        return own

    return run_steps(steps())


async def _create_ancestors_steps(
    store: Store, path: str, zarr_format: ZarrFormat, kinds: Mapping[str, str | None]
) -> tuple[list[str], list[str]]:
    """Create the missing groups above `path`. Returns their paths, which consolidated metadata lack, and those created here."""
    above = [] if zarr_format == 1 else [*ancestors(path)]
    for ancestor in above:
        if kinds[ancestor] == "array":
            message = f"A parent of '/{path}' is an array - only groups may have child nodes"
            raise ContainsArrayError(message, store=store.url, path=f"/{ancestor}")
    if not (missing := [ancestor for ancestor in above if kinds[ancestor] is None]):
        return [], []
    group = GroupMetadata(zarr_format=zarr_format).documents()
    items = [item for ancestor in missing for item in keyed_documents(ancestor, group).items()]
    # Concurrently for remote stores only: elsewhere a crash should leave parents without children, not the reverse.
    created = await gather_calls([store_call(store, "set_if_not_exists", *item) for item in items])
    own = dict.fromkeys(key.rpartition("/")[0] for (key, _), new in zip(items, created, strict=True) if new)
    return missing, [*own]


def delete_node(store: Store, path: str) -> None:
    """Remove the node at `path` and everything below it."""
    run_steps(delete_node_steps(store, path))


async def delete_node_steps(store: Store, path: str) -> None:
    """Remove the node at `path` and everything below it, as `delete_node` does."""
    store._check_writable(path)
    await hold_node_steps(store, path, delete_locked_steps(store, path))


async def is_half_removed_steps(store: Store, path: str) -> bool:
    """Whether there is no node at `path`, but chunks of one whose removal was stopped."""
    return _takes_several_requests(store, path) and await removals.was_stopped_steps(store, path)


async def delete_locked_steps(store: Store, path: str) -> None:
    """Remove the node at `path` and everything below it, while the locks of the shapes of arrays there are held."""
    if _takes_several_requests(store, path):
        await removals.remove_steps(store, path)
    else:
        await store_call(store, "delete_prefix", prefix_of(path))
    await follow_change_steps(store, path, replaced=True)


async def change_attributes_steps(
    store: Store, path: str, metadata: NodeMetadata, change: Callable[[dict[str, object]], dict[str, object]]
) -> NodeMetadata:
    """Update the stored attributes of a node, so that concurrent changes by other writers survive.

    `change` makes the new attributes of the stored ones, and may be called several times. Returns `metadata` with the new
    attributes.
    """
    serialize.warn_of_unstable_array(metadata)
    keys = formats.KEYS[metadata.zarr_format]
    new: dict[str, Any] = {}

    def in_document(document: dict[str, Any]) -> dict[str, JSON]:
        nonlocal new
        stored = require_document(store, path, document, metadata).get("attributes") or {}
        if not isinstance(stored, dict):
            raise _stale(store, path, "another document, without valid attributes, replaced this one", stored)
        new = change(dict(stored))
        if settings.get("zarr_python.documents"):
            document = formats.corrected(name, document)
        return {**document, "attributes": new}

    def alone(document: dict[str, object]) -> dict[str, object]:
        nonlocal new
        new = change(document)
        return new

    name = keys.attributes or keys.array
    if keys.attributes and isinstance(metadata, ArrayMetadata) and metadata.is_corrected:
        await correct_chunk_grid_steps(store, path, metadata)
    await change_steps(store, path, name, alone if keys.attributes else in_document)
    return metadata.with_attributes(new)


def change_document(store: Store, path: str, metadata: ArrayMetadata, changes: Mapping[str, JSON]) -> None:
    """Replace some members of an array's stored document; all others stay unchanged."""
    run_steps(change_document_steps(store, path, metadata, changes))


async def change_document_steps(store: Store, path: str, metadata: ArrayMetadata, changes: Mapping[str, JSON]) -> None:
    """Replace some members of an array's stored document, as `change_document` does."""

    def replaced(document: dict[str, object]) -> dict[str, object]:
        return {**require_document(store, path, document, metadata), **changes}

    await rewrite_document_steps(store, path, metadata, replaced)


async def rewrite_document_steps(
    store: Store,
    path: str,
    metadata: ArrayMetadata,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    follow: bool = True,
    sent: Callable[[Call], Call] | None = None,
) -> None:
    """Replace an array's stored document by ``change(document)``, in one `update`.

    `change` may be called several times; an exception from `change` ends the update, and nothing is stored. `change` gets
    ``{}`` when there is no document any more. Without `follow` consolidated metadata above stays unchanged: for changes that
    readers do not see. `sent` may wrap the call of `update`.
    """
    if follow:
        serialize.warn_of_unstable_array(metadata)
    name = formats.KEYS[metadata.zarr_format].array
    await change_steps(store, path, name, lambda document: change(formats.corrected(name, document)), follow, sent)


async def correct_chunk_grid_steps(store: Store, path: str, metadata: ArrayMetadata) -> None:
    """Store the corrected document of an array whose metadata `is_corrected`, before chunks are written that others find by it.

    A valid document, which another writer may have stored, is left as it is. Raises `StaleNodeError` where the document
    means other chunks than `metadata`.
    """
    name = formats.KEYS[metadata.zarr_format].array
    key = prefix_of(path) + name

    def corrected(stored: Buffer | None) -> Buffer | None:
        document = require_document(
            store, path, {} if stored is None else formats.loads(name, stored, key=key), metadata
        )
        new = formats.corrected(name, document)
        if chunk_layout(formats.parse_node(metadata.zarr_format, {name: new}).node) != chunk_layout(metadata):
            raise _stale(store, path, "the document has changed since this array was opened; reopen it", new)
        return stored if new is document else serialize.dumps({name: new})[name]

    await update_settled_steps(store, key, corrected)
    await follow_change_steps(store, path, names=_holders_of(metadata.zarr_format))


def require_document(store: Store, path: str, document: dict[str, T], metadata: NodeMetadata) -> dict[str, T]:
    """Return the document of a node that is to be changed.

    Raises `StaleNodeError` when another writer deleted it (what is to be changed would come back without the rest), or put a
    node of the other kind in its place. `metadata`: what the caller knows of the node.
    """
    if not document:
        raise _stale(store, path, "the node was deleted meanwhile")
    expected = "array" if isinstance(metadata, ArrayMetadata) else "group"
    if metadata.zarr_format == 3 and document.get("node_type") != expected:
        raise _stale(store, path, f"another node replaced this {expected}", document.get("node_type"))
    return document


async def require_current_steps(store: Store, path: str, metadata: NodeMetadata, found_at: str | None) -> None:
    """Raise `StaleNodeError` when `metadata`, of Zarr v1 or v2, does not describe the node at `path` any more.

    The document that makes the node exist must be there, and no document of a newer format at `found_at`: the path of the node
    at which this format was found to be the newest; ``None`` where the user gave the format. Zarr v3 has one document, whose
    update shows the same, so that nothing is requested.
    """
    if metadata.zarr_format == 3:
        return
    own, newer = _own_document(path, metadata), _newer_documents(metadata, found_at)
    present = await _present_steps(store, [own, *newer])
    for key in present:
        if key != own:
            raise _stale(store, path, f"the hierarchy was migrated from Zarr v{metadata.zarr_format} meanwhile", key)
    if not present:
        raise _stale(store, path, "the node was deleted or replaced meanwhile")


async def migrated_to_steps(store: Store, metadata: NodeMetadata, found_at: str | None) -> ZarrFormat | None:
    """Look after a change of documents whether a migration has finished during it. Returns the newest format, or ``None``.

    A migration reads the old documents again after it has written the new ones. So either it has seen the change, or its new
    documents are seen here, and get the same change.
    """
    newer = _newer_documents(metadata, found_at)
    present = await _present_steps(store, [*newer]) if newer else []
    return newer[present[0]] if present else None


async def settle_attributes_steps(
    store: Store, path: str, changed: NodeMetadata, found_at: str | None
) -> ZarrFormat | None:
    """Look after a change of attributes whether a migration has finished during it, as `migrated_to_steps`.

    Raises `StaleNodeError` where the node is gone, and removes its attributes, those of `changed`: the next would have them.
    """
    keys = formats.KEYS[changed.zarr_format]
    if keys.attributes is None:
        return None
    newer = _newer_documents(changed, found_at)
    present = await _present_steps(store, [_own_document(path, changed), *newer])
    if not present:
        written = serialize.dumps({keys.attributes: changed.attributes})[keys.attributes]
        await swap_settled_steps(store, prefix_of(path) + keys.attributes, written, None)
        hint = "If it was moved, its new attributes may have moved with it: open the hierarchy again"
        raise _stale(store, path, "the node was deleted, moved or replaced meanwhile", hint=hint)
    return next((newer[key] for key in present if key in newer), None)


async def _present_steps(store: Store, keys: Sequence[str]) -> list[str]:
    """Return those of `keys` that have a value, in one round trip."""
    for key in keys:
        store._invalidate_cached(key, lambda rest: not rest)
    answers = await store_call(store, "fetch", list(map(Fetch, keys)))
    return [key for key, answer in zip(keys, answers, strict=True) if answer is not None]


def _own_document(path: str, metadata: NodeMetadata) -> str:
    """Return the key of the document that makes a node exist."""
    keys = formats.KEYS[metadata.zarr_format]
    return prefix_of(path) + (keys.array if isinstance(metadata, ArrayMetadata) else str(keys.group))


def _newer_documents(metadata: NodeMetadata, found_at: str | None) -> dict[str, ZarrFormat]:
    """List the documents of newer formats that a node at `found_at` may get: key → format, the newest first."""
    numbers: list[ZarrFormat] = [] if found_at is None else [n for n in (3, 2) if n > metadata.zarr_format]
    return {prefix_of(found_at or "") + name: n for n in numbers for name in formats.KEYS[n][:2] if name}


def _stale(store: Store, path: str, what: str, got: object = None, hint: str | None = None) -> StaleNodeError:
    hint = hint or "Nothing was changed: open the hierarchy again"
    return StaleNodeError(what, store=store.url, path=f"/{path}", got=got, hint=hint)


async def change_steps(
    store: Store,
    path: str,
    name: str,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    follow: bool = True,
    sent: Callable[[Call], Call] | None = None,
) -> None:
    """Replace the document called `name` of the node at `path` by ``change(document)``, which gets ``{}`` for a missing one."""
    key = prefix_of(path) + name
    store._check_writable(key)

    def rewrite(old: Buffer | None) -> bytes:
        document = {} if old is None else formats.loads(name, old, key=key)
        try:
            return serialize.dumps({name: change(document)})[name]
        except ValueError as error:
            if isinstance(error, TessarrError):
                raise
            raise TypeError(f"attributes of /{path} cannot be stored as JSON: {error}") from error

    await update_settled_steps(store, key, rewrite, sent)
    if follow:
        await follow_change_steps(store, path, names=_holders_of(3 if name == formats.KEYS[3].array else 2))
