"""Move a node, and copy the value of one key."""

from __future__ import annotations

from tessarr.core.asynchronous.sans_io import raise_if_cancelled
from tessarr.core.stored import metadata_io
from tessarr.core.stored.consolidated import follow_changes
from tessarr.core.stored.walk import walk
from tessarr.errors import BaseZarrError, ContainsArrayError, ContainsGroupError, NodeNotFoundError
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.path import prefix_of


def copy_key(source: Store, key: str, dest: Store, new_key: str, dry_run: bool = False) -> int:
    """Copy the value of one key. Returns the size of the value in bytes; with `dry_run` nothing is written."""
    raise_if_cancelled()
    value = source.get(key)
    if value is None:
        return 0
    if not dry_run:
        dest.set(new_key, value)
    return byte_view(value).nbytes


def move_node(store: Store, source: str, dest: str) -> None:
    """Move a node and all nodes below: copy every key, then delete the old keys.

    Raises `NodeNotFoundError` when there is no node at `source`, `ContainsArrayError` or `ContainsGroupError` when
    there is one at `dest`, `BaseZarrError` for a move into itself.
    """
    node = metadata_io.read_node(store, source)
    if node is None:
        raise NodeNotFoundError("no node to move", store=store.url, path=f"/{source}")
    if (dest + "/").startswith(source + "/"):
        raise BaseZarrError("a node cannot be moved into itself", path=f"/{source}", got=f"/{dest}")
    present = metadata_io.read_node(store, dest)
    if present is not None:
        way = ContainsGroupError if type(present).__name__ == "GroupMetadata" else ContainsArrayError
        raise way("a node exists at the destination", store=store.url, path=f"/{dest}")
    metadata_io.check_path(dest, node.zarr_format)
    metadata_io.require_ancestors(store, dest, node.zarr_format)
    prefix = prefix_of(source)
    for key in sorted(store.list_prefix(prefix)):
        copy_key(store, key, store, prefix_of(dest) + key[len(prefix) :])
    metadata_io.delete_node(store, source)
    follow_changes(store, [entry.path for entry in walk(store, dest, zarr_format=node.zarr_format)])
