"""Read, create, change and delete the metadata documents of a node in a store.

This module is the only writer of metadata documents, so that it alone enforces the rules: nothing is deleted before its
replacement is valid and staged; documents are updated under the store's lock, or by compare-and-swap, and only in the members
concerned; ancestors exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from tessarr.common.warn import warn
from tessarr.core import open_transactions
from tessarr.core.asynchronous.sans_io import Call, gather_calls, run_steps, store_call
from tessarr.core.stored.consolidated import follow_change_steps
from tessarr.core.stored.parse_cache import parse_entry
from tessarr.core.stored.walk import Entry, fetch_settled_steps, read_entries_steps
from tessarr.core.stored.write_new import write_new_steps
from tessarr.errors import (
    ArrayInsteadError,
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    GroupInsteadError,
    GroupNotFoundError,
    MetadataValidationError,
    NodeNotFoundError,
    NodeTypeValidationError,
    Problem,
    StoreError,
    TessarrError,
    UnknownStoredCodecError,
    ZarrRuntimeWarning,
    ZarrUserWarning,
)
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.consolidated import V2_KEY
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Fetch, Store
from tessarr.stores.path import ancestors, check_node_name, prefix_of
from tessarr.stores.protocols import Remote
from tessarr.types import JSON, Buffer, ZarrFormat

T = TypeVar("T")
NodeMetadata: TypeAlias = ArrayMetadata | GroupMetadata
Kind: TypeAlias = type[ArrayMetadata] | type[GroupMetadata]

_V3, _V2, _V1 = formats.KEYS[3], formats.KEYS[2], formats.KEYS[1]


def read_node(store: Store, path: str, zarr_format: ZarrFormat | None = None) -> NodeMetadata | None:
    """Read the metadata of the node at `path`; ``None`` when there is no node.

    All documents that a node may have are requested at once. Without `zarr_format`, v3 wins over v2 over v1 (which is
    looked for at a store's root only), with a warning when the node has documents of several formats.
    """
    return run_steps(read_nodes_steps(store, [path], zarr_format))[0]


async def read_nodes_steps(
    store: Store, paths: Sequence[str], zarr_format: ZarrFormat | None = None, kind: Kind | None = None
) -> list[NodeMetadata | None]:
    """Read the nodes at several paths in one `fetch`, each as `read_node` does; `kind`: see `read_node_and_key_steps`."""
    return (await _read_steps(store, paths, zarr_format, kind, []))[0]


async def read_node_and_key_steps(
    store: Store, path: str, zarr_format: ZarrFormat | None, kind: Kind | None, key: str | None
) -> tuple[NodeMetadata | None, dict[str, Buffer | None]]:
    """Read a node as `read_node` does, and the value at `key` (full; ``None``: no value), in one `fetch`.

    With `kind` documents that only a node of the other kind has are not requested from a remote store.
    """
    keys = [key] if key else []
    found, beside = await _read_steps(store, [path], zarr_format, kind, keys)
    return found[0], dict(zip(keys, beside, strict=True))


async def _read_steps(
    store: Store, paths: Sequence[str], zarr_format: ZarrFormat | None, kind: Kind | None, beside: list[str]
) -> tuple[list[NodeMetadata | None], list[Buffer | None]]:
    asked = kind if isinstance(store, Remote) else None
    wanted = [(path, _names(not path, zarr_format, asked)) for path in paths]  # type: ignore[arg-type]  # hashable
    requests = [Fetch(prefix_of(path) + name) for path, names in wanted for name in names]
    try:
        found = await fetch_settled_steps(store, [*requests, *map(Fetch, beside)], paths)
    except StoreError as error:
        if zarr_format is not None or getattr(error, "status", None) not in (401, 403):
            raise
        found = await _read_v3_only_steps(store, requests, error)
        found = [*found, *(None for _ in beside)]
    answers = iter(found)
    nodes: list[NodeMetadata | None] = []
    for path, names in wanted:
        stored = {name: answer[0] for name in names if (answer := next(answers)) is not None}
        if _V1.array in stored and _V1.attributes not in names:
            late = await store_call(store, "get", prefix_of(path) + str(_V1.attributes))
            stored.update({} if late is None else {str(_V1.attributes): late})
        nodes.append(parsed(store, Entry(path, stored)))
    return nodes, [None if answer is None else answer[0] for answer in answers]


def parsed(store: Store, entry: Entry, zarr_format: ZarrFormat | None = None) -> NodeMetadata | None:
    """Parse the documents that were read at one path of `store`; ``None`` when no node is there."""
    try:
        return _with_separator(store, _parse(entry, zarr_format))
    except TessarrError as error:
        if isinstance(error, MetadataValidationError) and any(map(_names_no_codec, error.problems)):
            raise UnknownStoredCodecError(error.what, error.problems, key=error.key).at(
                store=store.url, path=f"/{entry.path}"
            ) from error
        error.at(store=store.url, path=f"/{entry.path}")
        raise


def _names_no_codec(problem: Problem) -> bool:
    return problem.kind == "unsupported" and problem.loc[:1] == ("codecs",) and problem.loc[-1:] == ("name",)


async def _read_v3_only_steps(
    store: Store, requests: Sequence[Fetch], refusal: StoreError
) -> list[list[Buffer] | None]:
    """Fetch only v3 documents from a store that refuses missing keys (a bucket without permission to list).

    A v3 document wins over all others, so that it does not matter whether the others are missing or forbidden. Raises
    `refusal` unless all nodes are v3.
    """
    wanted = [request for request in requests if request.key.rpartition("/")[2] == _V3.array]
    try:
        answers = await store_call(store, "fetch", wanted)
    except StoreError:
        raise refusal from None
    if any(answer is None for answer in answers):
        raise refusal
    found = dict(zip(wanted, answers, strict=True))
    return [found.get(request) for request in requests]


@lru_cache
def _names(is_root: bool, zarr_format: ZarrFormat | None, kind: Kind | None) -> tuple[str, ...]:
    """List the documents to request. The attributes of v1 are requested later, because v1 is rare."""
    if zarr_format is None and kind is ArrayMetadata:
        return (_V3.array, _V2.array, str(_V2.attributes), *((_V1.array,) if is_root else ()))
    if zarr_format is None and kind is GroupMetadata:
        return (_V3.array, *_V2.all[1:])
    candidates = (zarr_format,) if zarr_format else (3, 2, 1) if is_root else (3, 2)
    names = dict.fromkeys(name for number in candidates for name in formats.KEYS[number].all)
    return tuple(name for name in names if zarr_format or name != _V1.attributes)


def _parse(entry: Entry, zarr_format: ZarrFormat | None) -> NodeMetadata | None:
    """Parse the documents of `zarr_format`, or of the newest format among them; ``None`` when there is none."""
    candidates: tuple[ZarrFormat, ...] = (zarr_format,) if zarr_format else (3, 2, 1)
    found = [number for number in candidates if entry.values.keys() & set(formats.KEYS[number][:2])]
    if not found:
        return None
    if len(found) > 1 and found[0] == 3:
        message = f"{entry.prefix or '/'} has metadata of Zarr formats {found}; format {found[0]} is used"
        warn(message, ZarrUserWarning)
    return parse_entry(entry, found[0])


def _with_separator(store: Store, node: NodeMetadata | None) -> NodeMetadata | None:
    """Apply the store's `dimension_separator` to a v2 array whose document has none (OGC-02)."""
    if (
        isinstance(node, ArrayMetadata)
        and getattr(store, "dimension_separator", None) == "/"
        and _lacks_separator(node)
    ):
        from tessarr.keys.v2 import V2KeyEncoding

        return node.with_(chunk_key_encoding=V2KeyEncoding("/"))
    return node


def _lacks_separator(node: ArrayMetadata) -> bool:
    return node.zarr_format == 2 and node.dimension_separator == "." and "dimension_separator" not in node.extra


def warn_of_nested_chunks(store: Store, path: str, metadata: ArrayMetadata) -> None:
    """Warn when a local v2 array without `dimension_separator`, which defaults to ".", has a directory ``0``.

    Nested stores of zarr-python used "/" before documents had this member; read with ".", such an array is all fill value.
    """
    root = getattr(store, "root", None)
    if (
        len(metadata.shape) > 1
        and _lacks_separator(metadata)
        and isinstance(root, Path)
        and (root / path / "0").is_dir()
    ):
        message = f"/{path} has no dimension_separator, so its chunks are 0.0, 0.1, …; yet there is a directory 0"
        warn(f"{message}. If they are 0/0, 0/1, … open it with dimension_separator='/'", ZarrRuntimeWarning)


def require_node(store: Store, path: str, zarr_format: ZarrFormat | None, kind: Kind | None) -> NodeMetadata:
    """Read a node that must exist. `kind`: `ArrayMetadata`, `GroupMetadata` or either. Raises `NodeNotFoundError`."""
    return run_steps(require_node_steps(store, path, zarr_format, kind))


async def require_node_steps(
    store: Store, path: str, zarr_format: ZarrFormat | None, kind: Kind | None
) -> NodeMetadata:
    """Read a node that must exist, as `require_node` does."""
    found = (await read_nodes_steps(store, [path], zarr_format, kind))[0]
    return await expect_kind_steps(found, store, path, zarr_format, kind)


async def expect_kind_steps(
    node: NodeMetadata | None, store: Store, path: str, zarr_format: ZarrFormat | None, kind: Kind | None
) -> NodeMetadata:
    """Return `node` if it is of `kind`, else raise the error that names the node at `path`, if any."""
    if node is not None and (kind is None or isinstance(node, kind)):
        return node
    place = {"store": store.url, "path": f"/{path}"}
    wanted = {ArrayMetadata: "array", GroupMetadata: "group"}.get(kind, "node") if kind else "node"
    missing = {"array": ArrayNotFoundError, "group": GroupNotFoundError}.get(wanted, NodeNotFoundError)
    other = None
    remote = isinstance(store, Remote)
    if node is None and ((zarr_format and not remote) or (kind and not zarr_format and remote)):
        other = (await read_nodes_steps(store, [path]))[0]
        node = other if zarr_format is None else None
    if node is not None:
        kind_there = "array" if isinstance(node, ArrayMetadata) else "group"
        got = f"{'an' if kind_there == 'array' else 'a'} {kind_there}"
        instead: type[TessarrError] = {"array": GroupInsteadError, "group": ArrayInsteadError}.get(wanted, missing)
        if instead is GroupInsteadError and node.zarr_format == 3 and settings.get("zarr_python.arguments"):
            instead = NodeTypeValidationError  # as zarr-python, where a document is there: nothing is missing
        raise instead(f"no {wanted} here", got=got, hint=f"Open it with open_{kind_there}", **place)
    if other is not None:
        hint = f"There is a Zarr v{other.zarr_format} node; leave out zarr_format, or give {other.zarr_format}"
        raise missing(f"no Zarr v{zarr_format} {wanted} here", hint=hint, **place)
    unless = f", leave out zarr_format={zarr_format}," if zarr_format and remote else ","
    hint = f"Check the path{unless} or create it with mode='a' or 'w'"
    raise missing(f"No {wanted} found in store", hint=hint, **place)


def check_path(path: str, zarr_format: ZarrFormat) -> None:
    """Raise `NodeNameError` unless every name on `path` is allowed for a new node."""
    for name in path.split("/") if path else ():
        check_node_name(name, zarr_format)


def create_node(store: Store, path: str, metadata: NodeMetadata, *, overwrite: bool = False) -> None:
    """Write a new node, and missing groups above the node. See `create_documents_steps`."""
    run_steps(create_node_steps(store, path, metadata, overwrite=overwrite))


async def create_node_steps(
    store: Store, path: str, metadata: NodeMetadata, *, overwrite: bool = False, keep: bool = False
) -> None:
    """Write a new node, and missing groups above the node. See `create_documents_steps`."""
    check_path(path, metadata.zarr_format)
    documents = keyed_documents(path, metadata.documents())
    await create_documents_steps(store, path, metadata.zarr_format, documents, overwrite=overwrite, keep=keep)


async def create_documents_steps(
    store: Store,
    path: str,
    zarr_format: ZarrFormat,
    documents: dict[str, bytes],
    *,
    overwrite: bool,
    keep: bool = False,
) -> None:
    """Write a new node, or a hierarchy of new nodes, and missing groups above `path`.

    `documents`: full key → value, in the order of writing: the document that makes the node at `path` exist is the last one.
    With `overwrite` an existing node, and all below it, is replaced once the new documents are staged. Where there
    is none, nothing is deleted, unless ``zarr_python.overwrite_all`` is set. With `keep` an existing array gets the new
    documents, and its chunks stay.

    Raises `ContainsArrayError` or `ContainsGroupError` when another node exists at `path` and not `overwrite`.
    """
    store._check_writable(path)
    open_transactions.refuse_outside(store, path)
    kinds = await read_kinds_steps(store, path)
    existing = kinds[path]
    if existing is not None and not overwrite and not (keep and existing == "array"):
        raise _contains(store, path, existing)
    made = await _create_ancestors_steps(store, path, zarr_format, kinds)
    clears = store.supports_deletes and settings.get("zarr_python.overwrite_all")
    if overwrite and (existing is not None or clears):
        await store_call(store, "replace_prefix", prefix_of(path), documents)
    else:
        other = await write_new_steps(store, path, documents, replace=existing is not None)
        if other is not None:
            if not overwrite:
                raise _contains(store, other, (await read_kinds_steps(store, other))[other])
            await store_call(store, "replace_prefix", prefix_of(path), documents)
    below = dict.fromkeys(key.rpartition("/")[0] for key in reversed(documents))
    await follow_change_steps(store, path, replaced=not keep, below=[*made, *below])


def _contains(store: Store, path: str, kind: str | None) -> TessarrError:
    what = {"array": "an array", "group": "a group"}.get(
        kind or "", "documents of a node that another writer is creating"
    )
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
    entries = await read_entries_steps(store, [*ancestors(path), path], ("zarr.json", ".zarray", ".zgroup", "meta"))
    return {entry.path: entry.kind for entry in entries}


def keyed_documents(path: str, documents: Mapping[str, Any]) -> dict[str, bytes]:
    """Serialise the documents of the node at `path`: full key → bytes, in the order of writing."""
    prefix = prefix_of(path)
    data = formats.dumps(documents)
    return {prefix + name: data[name] for name in reversed(data)}


def replace_documents(store: Store, documents: Iterable[tuple[str, bytes]]) -> list[str]:
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


def _contains_error(kind: str) -> type[TessarrError]:
    return ContainsArrayError if kind == "array" else ContainsGroupError


def require_ancestors(store: Store, path: str, zarr_format: ZarrFormat) -> None:
    """Create the missing groups above `path`; existing groups are not written.

    Raises `ContainsArrayError` when a node above `path` is an array.
    """

    async def steps() -> None:
        kinds = await read_kinds_steps(store, path)
        made = await _create_ancestors_steps(store, path, zarr_format, kinds)
        if made:
            await follow_change_steps(store, path, below=made)

    run_steps(steps())


async def _create_ancestors_steps(
    store: Store, path: str, zarr_format: ZarrFormat, kinds: Mapping[str, str | None]
) -> list[str]:
    """Create the missing groups above `path`, and return their paths, which consolidated metadata do not have yet."""
    if zarr_format == 1:
        return []
    missing = [ancestor for ancestor in ancestors(path) if kinds[ancestor] is None]
    for ancestor in ancestors(path):
        kind = kinds[ancestor]
        if kind == "array":
            message = f"A parent of '/{path}' is an array - only groups may have child nodes"
            raise ContainsArrayError(message, store=store.url, path=f"/{ancestor}")
    group = GroupMetadata(zarr_format=zarr_format)
    documents = [item for ancestor in missing for item in keyed_documents(ancestor, group.documents()).items()]
    # Concurrently for remote stores only: elsewhere a crash should leave parents without children, not the reverse.
    if documents:
        await gather_calls([store_call(store, "set_if_not_exists", *item) for item in documents])
    return missing


def delete_node(store: Store, path: str) -> None:
    """Remove the node at `path` and everything below it."""
    run_steps(delete_node_steps(store, path))


async def delete_node_steps(store: Store, path: str) -> None:
    """Remove the node at `path` and everything below it, as `delete_node` does."""
    store._check_writable(path)
    await store_call(store, "delete_prefix", prefix_of(path))
    await follow_change_steps(store, path, replaced=True)


async def change_attributes_steps(
    store: Store, path: str, metadata: NodeMetadata, change: Callable[[dict[str, object]], dict[str, object]]
) -> NodeMetadata:
    """Update the stored attributes of a node, so that concurrent changes by other writers survive.

    `change` makes the new attributes of the stored ones, and may be called several times. Returns `metadata` with the new
    attributes.
    """
    keys = formats.KEYS[metadata.zarr_format]
    new: dict[str, Any] = {}

    def in_document(document: dict[str, Any]) -> dict[str, JSON]:
        nonlocal new
        new = change(dict(require_document(store, path, document).get("attributes") or {}))
        return {**document, "attributes": new}

    def alone(document: dict[str, object]) -> dict[str, object]:
        nonlocal new
        new = change(document)
        return new

    name = keys.attributes or keys.array
    await change_steps(store, path, name, alone if keys.attributes else in_document)
    return metadata.with_attributes(new)


def change_document(store: Store, path: str, metadata: ArrayMetadata, changes: Mapping[str, JSON]) -> None:
    """Replace some members of an array's stored document; all others stay unchanged."""
    run_steps(change_document_steps(store, path, metadata, changes))


async def change_document_steps(store: Store, path: str, metadata: ArrayMetadata, changes: Mapping[str, JSON]) -> None:
    """Replace some members of an array's stored document, as `change_document` does."""

    def replaced(document: dict[str, object]) -> dict[str, object]:
        return {**require_document(store, path, document), **changes}

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
    name = formats.KEYS[metadata.zarr_format].array
    await change_steps(store, path, name, lambda document: change(formats.corrected(name, document)), follow, sent)


def require_document(store: Store, path: str, document: dict[str, T]) -> dict[str, T]:
    """Return the document of a node that is to be changed. Raises `NodeNotFoundError` when another writer deleted it: what is
    to be changed would come back without the rest."""
    if not document:
        hint = "Open the hierarchy again"
        raise NodeNotFoundError("the node was deleted meanwhile", store=store.url, path=f"/{path}", hint=hint)
    return document


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
            return formats.dumps({name: change(document)})[name]
        except ValueError as error:
            if isinstance(error, TessarrError):
                raise
            hint = "JSON has no NaN or infinity; store them as strings"
            raise TypeError(f"attributes of /{path} cannot be stored as JSON: {error}. {hint}") from error

    update = store_call(store, "update", key, rewrite)
    await (update if sent is None else sent(update))
    if follow:  # consolidated metadata describes nodes of its own format only
        await follow_change_steps(store, path, names=(name,) if name == _V3.array else (V2_KEY,))
