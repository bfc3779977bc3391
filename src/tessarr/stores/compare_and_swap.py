"""Updates that compare and swap, for stores whose `set` takes `if_match` and that have no better way.

The version is asked for before the value is read, so that a value which another writer puts there in between is noticed
by the write. Threads of one process take turns; between processes and machines the one that was slower begins anew.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from tessarr.errors import ConflictError, StoreError
from tessarr.stores.base import Store
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.types import Buffer

ROUNDS = 200


def swap_until_done(store: Store, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
    """`Store.update` for a `store` with conditional writes.

    A value whose version has changed when it is to be deleted is read anew, but for a gap between the look and the
    deletion, for want of conditional deletes.

    Raises `ConflictError` when others were always faster, `StoreError` when the store does not tell a value's version.
    """
    store._check_writable(key)
    with KEYED_LOCKS.hold(("swapping", store.url, key)):
        for _ in rounds(store, key):
            version = store.version(key)
            old = store.get(key)
            if (old is None) != (version is None):
                if version is None and store.version(key) is None:
                    raise StoreError(
                        "the store tells no version, so that an update could undo another", store=store.url, key=key
                    )
                continue  # it came or went in between
            new = change(old)
            with suppress(ConflictError):
                if new is not None:
                    store.set(key, new, if_match=version)
                elif old is not None:
                    if store.version(key) != version:
                        continue
                    store.delete(key)
                return


def rounds(store: Store, key: str) -> Iterator[None]:
    """The rounds of a loop that compares and swaps, with pauses that grow. Raises `ConflictError` after the last one."""
    for number in range(ROUNDS):
        yield
        time.sleep(random.uniform(0, min(0.001 * 2 ** min(number, 8), 0.2)))
    raise ConflictError("other writers were always faster", store=store.url, key=key, got=f"{ROUNDS} rounds")


class ConditionalStore(Store):
    """A store to inherit whose `set` is conditional (`if_match`) and which has `version`: its updates compare and swap.

    So no part of a chunk or shard that is written from several processes or machines is lost.
    """

    supports_conditional_writes = True
    supports_conditional_deletes = False
    update_sees_set = True
    update_reaches_all = True

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        """See `Store.update`."""
        swap_until_done(self, key, change)
