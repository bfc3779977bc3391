"""Let one copy at a time write to a place: with the store's lock, or else with a claim beside the place.

Of two copies to one place, each of which replaces keys one after the other, a mixture would be left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tessarr.core import open_transactions
from tessarr.core.asynchronous import clock
from tessarr.errors import ConflictError
from tessarr.stores.base import Store
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import ConditionalSet, Lock
from tessarr.types import Buffer

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
        key, own = f"{prefix_of(group)}.{name or _ROOT}-{_ID}.partial/copy", clock.CLOCK.owner()
        try:
            if not _take(store, key, own.encode()):
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
        except BaseException:
            clock.CLOCK.ended.add(own)  # the claim may be left
            raise


def _take(store: Store, key: str, own: bytes) -> bool:
    """Store the claim `own`, also over one that a copy of this process has left after an error. Returns whether it is there."""
    if store.set_if_not_exists(key, own):
        return True

    def taken_over(old: Buffer | None) -> Buffer | None:
        return own if old is not None and bytes(old).decode("latin-1") in clock.CLOCK.ended else old

    store.update(key, taken_over)
    return store.get(key) == own
