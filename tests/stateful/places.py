"""Stores for random programs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from random import Random

import icechunk
import obstore.store
import zarr.storage
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from tessarr.storage import (
    CacheStore,
    FsspecStore,
    LMDBStore,
    LocalStore,
    MemoryStore,
    ObjectStore,
    PrefixStore,
    SQLiteStore,
    ZipStore,
)
from tessarr.stores.base import Store
from tessarr.stores.virtual.branches import is_session
from tessarr.stores.virtual.zarr_python import ZarrPythonStore

_NUMBERS = itertools.count()


ANY_KEYS = ["memory", "sqlite", "lmdb"]
"""Kinds of stores in which any text is a key, and a key may begin with another one and a slash."""
CAN_DELETE = [*ANY_KEYS, "memory", "local", "local", "local", "prefix", "cache"]
OF_NODES = [*CAN_DELETE, "object", "fsspec", "zarr-python", "icechunk"]
"""Those, and kinds of stores that do not take every sequence of calls, but every hierarchy."""


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
    if kind == "object":
        return ObjectStore(obstore.store.MemoryStore())
    if kind == "fsspec":
        return FsspecStore(LocalFileSystem(), path=str(place))
    if kind == "zarr-python":
        return ZarrPythonStore(zarr.storage.LocalStore(place))
    if kind == "zarr-python over fsspec":
        files = MemoryFileSystem(skip_instance_cache=True)
        files.store, files.pseudo_dirs = {}, [""]  # else each has those of all
        wrapper = AsyncFileSystemWrapper(files, asynchronous=True)
        return ZarrPythonStore(zarr.storage.FsspecStore(wrapper, path="/data"))
    if kind == "icechunk":
        session = icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main")
        return ZarrPythonStore(session.store)
    if kind == "prefix":
        return PrefixStore(LocalStore(place), "below/here")
    if kind == "cache":
        return CacheStore(LocalStore(place))
    return MemoryStore()


def formats(store: Store) -> list[int]:
    """The versions of Zarr that a store holds, those of which more programs are wanted more than once."""
    return [3] if is_session(store) else [2, 3, 3]


def reopened(store: Store) -> Store:
    """The store again, as another process would open it, where it is on a disk."""
    if isinstance(store, LocalStore):
        return LocalStore(store.root)
    if isinstance(store, ZipStore) and store.path is not None:
        store.close()
        return ZipStore(store.path, mode="a")
    return store
