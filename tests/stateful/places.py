"""Stores for random programs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tessarr.storage import (
    CacheStore,
    LMDBStore,
    LocalStore,
    MemoryStore,
    PrefixStore,
    SQLiteStore,
    ZipStore,
)
from tessarr.stores.base import Store

_NUMBERS = itertools.count()


ANY_KEYS = ["memory", "sqlite", "lmdb"]
"""Kinds of stores in which any text is a key, and a key may begin with another one and a slash."""
CAN_DELETE = [*ANY_KEYS, "memory", "local", "local", "local", "prefix", "cache"]


def make_store(rng: Random, folder: Path, kinds: Sequence[str] = CAN_DELETE) -> Store:
    """An empty store of one of the `kinds` below `folder`."""
    place = folder / str(next(_NUMBERS))
    kind = rng.choice(kinds)
    if kind == "local":
        return LocalStore(place)
    if kind == "sqlite":
        return SQLiteStore(f"{place}.db")
    if kind == "lmdb":
        return LMDBStore(f"{place}.lmdb")
    if kind == "zip":
        return ZipStore(f"{place}.zip", mode="a")
    if kind == "prefix":
        return PrefixStore(LocalStore(place), "below/here")
    if kind == "cache":
        return CacheStore(LocalStore(place))
    return MemoryStore()


def reopened(store: Store) -> Store:
    """The store again, as another process would open it, where it is on a disk."""
    if isinstance(store, LocalStore):
        return LocalStore(store.root)
    if isinstance(store, ZipStore) and store.path is not None:
        store.close()
        return ZipStore(store.path, mode="a")
    return store
