"""Read and parse the metadata documents of nodes, in as few requests as possible."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from tessarr.common.warn import warn
from tessarr.core.asynchronous.sans_io import run_steps, store_call
from tessarr.core.stored.parse_cache import parse_entry
from tessarr.core.stored.walk import Entry, fetch_settled_steps, requests_of
from tessarr.errors import (
    ArrayInsteadError,
    ArrayNotFoundError,
    ContainsArrayError,
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
from tessarr.stores.path import join, prefix_of
from tessarr.stores.protocols import Remote
from tessarr.types import Buffer, ZarrFormat

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


def key_of_consolidated(store: Store, path: str, zarr_format: int | None, use: bool | str | None) -> str | None:
    """Return the key of v2's consolidated metadata, to be read together with a node's documents, for remote stores only."""
    if (
        not isinstance(store, Remote)
        or zarr_format in (1, 3)
        or use is False
        or not store.supports_consolidated_metadata
    ):
        return None
    return prefix_of(path) + (use if isinstance(use, str) else V2_KEY)


async def _read_steps(
    store: Store, paths: Sequence[str], zarr_format: ZarrFormat | None, kind: Kind | None, beside: list[str]
) -> tuple[list[NodeMetadata | None], list[Buffer | None]]:
    asked = kind if isinstance(store, Remote) else None
    wanted = [(path, _names_at(store, path, zarr_format, asked)) for path in paths]
    requests = [request for path, names in wanted for request in requests_of(path, names)]
    try:
        found = await fetch_settled_steps(store, [*requests, *map(Fetch, beside)] if beside else requests, paths)
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
        return _with_separator(store, _parse(store, entry, zarr_format))
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


def _names_at(store: Store, path: str, zarr_format: ZarrFormat | None, kind: Kind | None) -> tuple[str, ...]:
    return _names(not path and store.may_hold_v1, zarr_format, kind)  # type: ignore[arg-type]  # hashable


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


def _parse(store: Store, entry: Entry, zarr_format: ZarrFormat | None) -> NodeMetadata | None:
    """Parse the documents of `zarr_format`, or of the newest format among them; ``None`` when there is none."""
    candidates: tuple[ZarrFormat, ...] = (zarr_format,) if zarr_format else (3, 2, 1)
    found: list[ZarrFormat] = [
        number for number in candidates if not formats.NODE_DOCUMENTS[number].isdisjoint(entry.values)
    ]
    if not found:
        return None
    if len(found) > 1 and found[0] == 3:
        old = next(key for key in formats.KEYS[found[1]][:2] if key in entry.values)
        at = join(store.url if store.given is None else str(store.given), entry.path)
        message = (
            f"Both zarr.json (Zarr format 3) and {old} (Zarr format {found[1]}) metadata objects exist at {at}. "
            f"Zarr {'v3' if old == _V2.array else 'format 3'} will be used."
        )
        warn(message, ZarrUserWarning)
    return parse_entry(entry, found[0], store)


def _with_separator(store: Store, node: NodeMetadata | None) -> NodeMetadata | None:
    """Apply the store's `dimension_separator` to a v2 array whose document has none (OGC-02)."""
    if (
        isinstance(node, ArrayMetadata)
        and node.zarr_format == 2
        and store.dimension_separator == "/"
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
    if len(metadata.shape) < 2 or not _lacks_separator(metadata):
        return
    root = getattr(store, "root", None)
    if isinstance(root, os.PathLike) and os.path.isdir(os.path.join(root, path, "0")):
        message = f"/{path} has no dimension_separator, so its chunks are 0.0, 0.1, …; yet there is a directory 0"
        warn(f"{message}. If they are 0/0, 0/1, … open it with dimension_separator='/'", ZarrRuntimeWarning)


async def require_node_steps(
    store: Store, path: str, zarr_format: ZarrFormat | None, kind: Kind | None
) -> NodeMetadata:
    """Read a node that must exist. `kind`: `ArrayMetadata`, `GroupMetadata` or either. Raises `NodeNotFoundError`."""
    (found,), _ = await _read_steps(store, [path], zarr_format, kind, [])
    if found is not None and (kind is None or isinstance(found, kind)):
        return found
    return await expect_kind_steps(found, store, path, zarr_format, kind)


async def _of_other_kind_steps(store: Store, path: str, kind: Kind) -> NodeMetadata | None:
    """Read a node by the documents that were not requested when none of `kind` was found."""
    known = _names_at(store, path, None, kind)
    names = tuple(name for name in _names_at(store, path, None, None) if name not in known)
    found = await fetch_settled_steps(store, requests_of(path, names), [path])
    stored = {name: answer[0] for name, answer in zip(names, found, strict=True) if answer is not None}
    return parsed(store, Entry(path, stored))


async def expect_kind_steps(
    node: NodeMetadata | None, store: Store, path: str, zarr_format: ZarrFormat | None, kind: Kind | None
) -> NodeMetadata:
    """Return `node` if it is of `kind`, else raise the error that names the node at `path`, if any."""
    if node is not None and (kind is None or isinstance(node, kind)):
        return node
    place = {"store": store.url, "path": f"/{path}"}
    either = "group" if settings.get("zarr_python.arguments") else "node"
    wanted = {ArrayMetadata: "array", GroupMetadata: "group"}.get(kind, either) if kind else either
    missing = {"array": ArrayNotFoundError, "group": GroupNotFoundError}.get(wanted, NodeNotFoundError)
    other = None
    remote = isinstance(store, Remote)
    if node is None and zarr_format and not remote:
        other = (await read_nodes_steps(store, [path]))[0]
    elif node is None and kind and not zarr_format and remote:
        node = await _of_other_kind_steps(store, path, kind)
    if node is not None:
        kind_there = "array" if isinstance(node, ArrayMetadata) else "group"
        got = f"{'an' if kind_there == 'array' else 'a'} {kind_there}"
        instead: type[TessarrError] = {"array": GroupInsteadError, "group": ArrayInsteadError}.get(wanted, missing)
        if node.zarr_format == 3 and settings.get("zarr_python.arguments"):  # nothing is missing: a document is there
            as_zarr_python = {GroupInsteadError: NodeTypeValidationError, ArrayInsteadError: ContainsArrayError}
            instead = as_zarr_python.get(instead, instead)
        raise instead(f"no {wanted} here", got=got, hint=f"Open it with open_{kind_there}", **place)
    if other is not None:
        hint = f"There is a Zarr v{other.zarr_format} node; leave out zarr_format, or give {other.zarr_format}"
        raise missing(f"no Zarr v{zarr_format} {wanted} here", hint=hint, **place)
    unless = f", leave out zarr_format={zarr_format}," if zarr_format and remote else ","
    hint = f"Check the path{unless} or create it with mode='a' or 'w'"
    raise missing(f"No {wanted} found in store", hint=hint, **place)
