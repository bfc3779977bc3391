"""Write the documents of new nodes, each only where no other writer has created one."""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.core.asynchronous.sans_io import store_call
from tessarr.core.stored.consolidated import follow_change_steps
from tessarr.metadata import formats
from tessarr.stores.base import Fetch, Store
from tessarr.stores.path import prefix_of

_OWN_DOCUMENTS = tuple(dict.fromkeys(key for number in (3, 2) for key in formats.KEYS[number][:2] if key))
"""Names of the documents that each make a node, of one kind and format."""


async def write_new_steps(store: Store, path: str, documents: Mapping[str, bytes], *, replace: bool) -> str | None:
    """Write the documents of a new node at `path`, or of a hierarchy of new nodes; with `replace` over those that are there.

    `documents`: full key → value, in the order of writing. Without `replace` each document is created only where there is none;
    else those that were created are removed again, and the path of the node that is in the way is returned. Where only some
    documents of a node are there, another writer is creating it, or was killed.
    """
    *before, (own_key, own) = documents.items()
    made: list[str] = []
    for key, data in before:
        below = key.rpartition("/")[0]
        if replace:
            await store_call(store, "set", key, data)
        elif await store_call(store, "set_if_not_exists", key, data):
            made.append(key)
        else:
            return await _remove_steps(store, made, below)
    if replace:
        await store_call(store, "set", own_key, own)
        return None
    if not await store_call(store, "set_if_not_exists", own_key, own):
        return await _remove_steps(store, made, path)
    # A document of another name makes a node too, of another format or kind, which no condition on this one notices.
    at = prefix_of(path)
    others = [Fetch(at + name) for name in _OWN_DOCUMENTS if at + name != own_key]
    if any(answer is not None for answer in await store_call(store, "fetch", others)):
        return await _remove_steps(store, [*made, own_key], path)
    return None


async def _remove_steps(store: Store, made: list[str], other: str) -> str:
    """Remove the documents that were created, and return the path `other`."""
    if made:
        await store_call(store, "delete_many", made)
        paths = list(dict.fromkeys(key.rpartition("/")[0] for key in made))
        await follow_change_steps(store, other, below=paths)
    return other
