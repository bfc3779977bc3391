"""Stores for random programs."""

from __future__ import annotations

import itertools
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


def make_store(rng: Random, folder: Path, *, archives: bool = False) -> Store:
    """An empty store below `folder`; with `archives` perhaps one that cannot delete."""
    place = folder / str(next(_NUMBERS))
    kinds = ["local", "local", "local", "memory", "memory", "sqlite", "lmdb", "prefix", "cache"]
    kind = rng.choice([*kinds, "zip"] if archives else kinds)
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
