"""What type checkers know of the abilities of a store: nothing before `isinstance`, and the method afterwards.

No test module: nothing here runs (see `public_surface.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

from tessarr.storage import MemoryStore, Store
from tessarr.stores.protocols import ConditionalSet, GetRanges, List, Lock, LockContext, Writable
from tessarr.types import Buffer, ByteRange


def lock_or_refuse(store: Store) -> LockContext:
    if not isinstance(store, Lock):
        # Checked, although `Store` has a method `lock`: a store without the ability comes here.
        assert_type(store, Store)
        raise ValueError(store.url)
    return store.lock("key")


def ranges_of(place: object, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
    return place.get_ranges("key", ranges) if isinstance(place, GetRanges) else None


def swap(store: Store) -> object:
    return store.set_if("key", b"", None) if isinstance(store, ConditionalSet) else store.set("key", b"")


def listed(store: MemoryStore) -> list[str]:
    return [*store.list("")] if isinstance(store, List) else []


class FourMethods:
    """An object with the methods that every store needs: accepted without `isinstance`."""

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        return None

    def set(self, key: str, value: Buffer) -> None: ...

    def delete(self, key: str) -> None: ...


def written(store: Writable) -> None:
    store.set("key", b"")


def without_isinstance(store: Store) -> None:
    written(store)
    written(FourMethods())
    needs_a_lock: Lock = store  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    assert_type(needs_a_lock.lock("key"), LockContext)
