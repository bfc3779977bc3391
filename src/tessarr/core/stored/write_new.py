"""Write the documents of new nodes, each only where no other writer has created one."""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.core.asynchronous.sans_io import Steps, store_call
from tessarr.core.stored.consolidated import follow_change_steps
from tessarr.core.stored.walk import read_entries_steps
from tessarr.metadata import formats
from tessarr.stores.base import Store

_V2 = formats.KEYS[2]
_KINDS_OF_2 = (_V2.array, str(_V2.group))


def write_new_steps(store: Store, path: str, documents: Mapping[str, bytes], *, replace: bool) -> Steps[str | None]:
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
            yield [store_call(store, "set", key, data)]
        elif (yield [store_call(store, "set_if_not_exists", key, data)]) == [True]:
            made.append(key)
        else:
            return (yield from _remove_steps(store, made, below))
    if replace:
        yield [store_call(store, "set", own_key, own)]
        return None
    if (yield [store_call(store, "set_if_not_exists", own_key, own)]) == [False]:
        return (yield from _remove_steps(store, made, path))
    if own_key.rpartition("/")[2] in _KINDS_OF_2:
        # In v2 another document makes a node of the other kind, which no condition on this document notices.
        (entry,) = yield from read_entries_steps(store, [path], _KINDS_OF_2)
        if len(entry.values) > 1:
            return (yield from _remove_steps(store, [*made, own_key], path))
    return None


def _remove_steps(store: Store, made: list[str], other: str) -> Steps[str]:
    """Remove the documents that were created, and return the path `other`."""
    if made:
        yield [store_call(store, "delete_many", made)]
        paths = list(dict.fromkeys(key.rpartition("/")[0] for key in made))
        yield from follow_change_steps(store, other, below=paths)
    return other
