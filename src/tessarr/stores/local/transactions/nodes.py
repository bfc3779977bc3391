"""Find the directories of nodes that a transaction changes: there it leaves marks, and pointers to its journal."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tessarr.stores.base import Version
from tessarr.stores.local.transactions.journal import DOCUMENTS, is_document
from tessarr.stores.local.transactions.recovery import path_of, read_small

_ARRAY_NBYTES = 1 << 16
"""A document with more bytes than this is not looked into."""


def documents_of(changed: Iterable[str], read: Mapping[str, Version | None]) -> list[str]:
    """Select the documents among the keys `changed`, and those `read` (key → version) that are there."""
    return list(filter(is_document, [*changed, *(key for key, version in read.items() if version is not None)]))


def list_nodes(base: str, keys: Sequence[str], documents: Iterable[str]) -> list[str]:
    """List the nodes between the root, which is left out, and the sorted `keys`, by their prefixes without the last "/".

    A node has a document in the directory `base`, or is that of one of `documents`.
    """
    nodes = {folder for folder in map(parent, documents) if not folder or _below(keys, folder)}
    pending = [""]
    while pending:
        folder = pending.pop()
        is_node, is_array = _look(base, folder)
        if is_node:
            nodes.add(folder)
        if not is_array:  # below an array there are chunks: no directory there is looked at
            pending += _children(keys, folder)
    return sorted(nodes - {""})


def _below(keys: Sequence[str], folder: str) -> range:
    """Return where in the sorted `keys` those below `folder` are."""
    if not folder:
        return range(len(keys))
    return range(bisect_left(keys, f"{folder}/"), bisect_left(keys, f"{folder}0"))  # "0" comes after "/"


def _children(keys: Sequence[str], folder: str) -> Iterator[str]:
    """List the directories in `folder` that the sorted `keys` are in or below."""
    below = _below(keys, folder)
    at, begin = below.start, len(folder) + 1 if folder else 0
    while at < below.stop:
        end = keys[at].find("/", begin)
        if end < 0:
            at += 1
            continue
        yield keys[at][:end]
        at = bisect_left(keys, f"{keys[at][:end]}0", at)


def nodes_of(keys: Iterable[str], nodes: Collection[str]) -> set[str]:
    """Return those of `nodes`, of which the root is one, that are the innermost ones above one of `keys`."""
    ordered = sorted(dict.fromkeys(keys))  # most are in order
    below = {node: len(_below(ordered, node)) for node in nodes}
    own = dict(below)
    for node in filter(None, nodes):
        above = parent(node)
        while above and above not in below:
            above = parent(above)
        own[above] -= below[node]
    return {node for node, count in own.items() if count}


def parent(key: str) -> str:
    """Return what is before the last "/" of a key."""
    return key.rpartition("/")[0]


def _look(base: str, folder: str) -> tuple[bool, bool]:
    """Find out whether a directory is one of a node, and of an array."""

    def there(name: str) -> bool:
        return os.path.lexists(path_of(base, f"{folder}/{name}" if folder else name))

    is_node = there("zarr.json")
    if (is_node and _describes_array(base, folder)) or there(".zarray"):
        return True, True
    return is_node or any(map(there, DOCUMENTS)), False


def _describes_array(base: str, folder: str) -> bool:
    data = read_small(path_of(base, f"{folder}/zarr.json".lstrip("/"))) or b""
    if b'"array"' not in data or len(data) > _ARRAY_NBYTES:
        return False
    try:
        return bool(json.loads(data)["node_type"] == "array")
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
