"""Let one copy at a time write to a place: with the store's lock, or else with a claim beside the place.

Of two copies to one place, each of which replaces keys one after the other, a mixture would be left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tessarr.core import open_transactions
from tessarr.errors import ConflictError
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import ConditionalSet, Lock

_ID = "c0b1ed00"
"""In place of the random number of a place of work, so that what a killed client left is garbage (`tessarr.tools.gc`)."""
_ROOT = "root~"


@contextmanager
def one_copy(store: Store, path: str) -> Iterator[None]:
    """Hold the right to copy to `path`.

    Where the store's locks reach all its writers (`Lock`), the copy waits for another one to end. Elsewhere it waits for those
    of this process, and raises `ConflictError` for one of another process, if the store writes with conditions.
    In a transaction nothing is held: its commit notices other writers.
    """
    if open_transactions.is_overlay(store):
        yield
        return
    group, _, name = path.rpartition("/")
    with store.lock(f"{prefix_of(group)}.{name}.copy"):
        if isinstance(store, Lock) or not isinstance(store, ConditionalSet):
            yield
            return
        key, own = f"{prefix_of(group)}.{name or _ROOT}-{_ID}.partial/copy", os.urandom(8).hex().encode()
        if not store.set_if_not_exists(key, own) and store.get(key) != own:  # the answer may have been lost
            raise ConflictError(
                "another client is copying to this place",
                store=store.url,
                path=f"/{path}",
                key=key,
                hint="Nothing was changed: repeat it later. If the other client was killed, delete this key",
            )
        try:
            yield
        finally:
            store.delete(key)
