"""Find the directories of nodes that a transaction changes: there it leaves marks, and pointers to its journal."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from tessarr.stores.base import Version
from tessarr.stores.local.transactions.journal import DOCUMENTS, is_document
from tessarr.stores.local.transactions.recovery import path_of, read_small

_ARRAY_NBYTES = 1 << 16
"""A document with more bytes than this is not looked into."""


def list_nodes(base: str, changed: Iterable[str], read: Mapping[str, Version | None]) -> list[str]:
    """List the nodes between the root, which is left out, and the keys `changed`, by their prefixes without the last "/".

    A node has a document in the directory `base`, or among the keys `changed`, or among the keys `read` with their versions.
    """
    children: defaultdict[str, list[str]] = defaultdict(list)
    every = {""}
    for key in changed:
        folder = parent(key)
        while folder not in every:
            every.add(folder)
            above = parent(folder)
            children[above].append(folder)
            folder = above
    documents = [*changed, *(key for key, version in read.items() if version is not None)]
    nodes = {parent(key) for key in documents if is_document(key)} & every
    pending = [""]
    while pending:
        folder = pending.pop()
        names = [name for name in DOCUMENTS if os.path.lexists(path_of(base, f"{folder}/{name}".lstrip("/")))]
        if names:
            nodes.add(folder)
        if not _is_array(base, folder, names):  # below an array there are chunks: no directory there is looked at
            pending += children.get(folder, ())
    return sorted(nodes - {""})


def node_of(key: str, nodes: Collection[str]) -> str:
    """Return the innermost of `nodes`, of which the root is one, that `key` is below."""
    folder = parent(key)
    while folder and folder not in nodes:
        folder = parent(folder)
    return folder


def parent(key: str) -> str:
    """Return what is before the last "/" of a key."""
    return key.rpartition("/")[0]


def _is_array(base: str, folder: str, names: Collection[str]) -> bool:
    if ".zarray" in names:
        return True
    if "zarr.json" not in names:
        return False
    data = read_small(path_of(base, f"{folder}/zarr.json".lstrip("/"))) or b""
    if b'"array"' not in data or len(data) > _ARRAY_NBYTES:
        return False
    try:
        return bool(json.loads(data)["node_type"] == "array")
    except (ValueError, KeyError, TypeError):
        return False
