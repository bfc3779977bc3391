"""A wrapper that counts calls.

>>> from tessarr.storage import MemoryStore
>>> store = CountingStore(MemoryStore({"a/b": b"1"}))
>>> store.get("a/b"), store.get("c"), dict(store.counter)
(b'1', None, {'get': 2})
"""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, nullcontext

from tessarr.stores.base import Store
from tessarr.stores.locks import fork_safe_lock
from tessarr.stores.wrappers.base import ForwardingStore

_counter_lock = fork_safe_lock()


class CountingStore(ForwardingStore):
    """Count the calls of another store by method in `counter`, a `collections.Counter`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.counter: Counter[str] = Counter()

    def _count(self, method: str) -> None:
        with _counter_lock:
            self.counter[method] += 1

    def _around(self, method: str, place: str) -> AbstractContextManager[object]:
        self._count(method)
        return nullcontext()
