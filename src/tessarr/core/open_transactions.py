"""The transactions that are open in this context, so that no other object writes to their places.

A transaction compares what it read with the store when it commits: a write that bypassed it, by the same program, would be a
conflict with itself, found late. It is refused at once.
"""

from __future__ import annotations

import os
import weakref
from contextvars import ContextVar

from tessarr.errors import TransactionError
from tessarr.stores.base import Store
from tessarr.stores.url import overlaps

_OPEN: ContextVar[tuple[tuple[int, Store, weakref.ref[Store]], ...]] = ContextVar("open_transactions", default=())
"""Per transaction: the process that began it, the store of its place, and its overlay, which is not kept alive."""
overlays: set[int] = set()
"""The overlays of all open transactions of the process, by identity: mostly none, and then nothing is looked up."""


def enter(store: Store, overlay: Store) -> None:
    """Record a transaction over `store`. Raises `TransactionError` if one is open there, above or below, in this context."""
    present = _present()
    for other, open_overlay in present:
        if open_overlay is store or overlaps(other, "", store, ""):
            raise TransactionError(
                "a transaction of this place, or of one above or below it, is open already",
                store=store.url,
                got=f"an open transaction of {other.url}",
                hint="Transactions cannot be nested: use the one that is open, or begin this one after it",
            )
    overlays.add(id(overlay))
    process = os.getpid()
    entries = [*present, (store, overlay)]
    _OPEN.set(tuple((process, place, weakref.ref(staged)) for place, staged in entries))


def _present() -> list[tuple[Store, Store]]:
    """List the transactions of this context that are open: one may have been ended by a thread, which has its own context."""
    process = os.getpid()
    found = [(store, overlay()) for began, store, overlay in _OPEN.get() if began == process]
    return [(store, overlay) for store, overlay in found if overlay is not None and id(overlay) in overlays]


def leave(overlay: Store) -> None:
    """Forget a transaction that has ended. Takes no lock: the garbage collector may call it."""
    overlays.discard(id(overlay))
    _OPEN.set(tuple(entry for entry in _OPEN.get() if entry[2]() is not overlay))


def is_overlay(store: Store) -> bool:
    """Whether `store` is the overlay of an open transaction."""
    return id(store) in overlays


def refuse_outside(store: Store, path: str) -> None:
    """Raise `TransactionError` if the node at `path` of `store` is in the place of an open transaction, and not part of it."""
    if not overlays:
        return
    for other, overlay in _present():
        if store is not overlay and overlaps(other, "", store, path):
            raise TransactionError(
                "a transaction of this place is open, and this object is not of it",
                store=store.url,
                path=f"/{path}",
                hint="Write through the group or array of the transaction (`tx.group`, `tx.array`), or after its end",
            )
