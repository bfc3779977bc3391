"""Every store by name, for users: names of zarr-python 3, of zarr-python 2, and tessarr's own.

>>> store = MemoryStore()
>>> StorePath(store, "group") / "array" == StorePath(store, "group/array")
True

Each name is imported on first use; a store whose package is missing then raises an error that names the package.
`listdir`, `rmdir`, `rename`, `getsize`, `contains_array`, `contains_group`, `init_array` and `init_group` are
zarr-python 2's functions on stores.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessarr.facade.zarr2.storage import (
        ABSStore,
        FSStore,
        contains_array,
        contains_group,
        getsize,
        init_array,
        init_group,
        listdir,
        migrate_1to2,
        rename,
        rmdir,
    )
    from tessarr.stores.asynchronous import AsyncStore, to_async, to_sync
    from tessarr.stores.base import ANY, ConditionalStore, Store
    from tessarr.stores.database.dbm import DBMStore
    from tessarr.stores.database.lmdb import LMDBStore
    from tessarr.stores.database.mongodb import MongoDBStore
    from tessarr.stores.database.redis import RedisStore
    from tessarr.stores.database.sqlite import SQLiteStore
    from tessarr.stores.local.store import LocalStore
    from tessarr.stores.local.zarr2 import DirectoryStore, NestedDirectoryStore, TempStore, atexit_rmtree
    from tessarr.stores.memory.mapping import DictStore, KVStore, MappingStore
    from tessarr.stores.memory.store import ManagedMemoryStore, MemoryStore
    from tessarr.stores.path import StorePath
    from tessarr.stores.remote.fsspec import FsspecStore
    from tessarr.stores.remote.obstore.store import ObjectStore
    from tessarr.stores.transformed.checksummed import ChecksummingStore
    from tessarr.stores.transformed.normalized import NormalizingStore
    from tessarr.stores.url import StoreLike, same_place, store_from
    from tessarr.stores.virtual.n5 import N5FSStore, N5Store
    from tessarr.stores.virtual.precomputed import PrecomputedStore
    from tessarr.stores.virtual.reference import ReferenceStore
    from tessarr.stores.virtual.unsupported import GpuMemoryStore
    from tessarr.stores.virtual.zarr_python import ZarrPythonStore
    from tessarr.stores.wrappers.base import ForwardingStore, WrapperStore
    from tessarr.stores.wrappers.cache import CacheStore, LRUStoreCache
    from tessarr.stores.wrappers.consolidated import ConsolidatedMetadataStore
    from tessarr.stores.wrappers.counting import CountingStore
    from tessarr.stores.wrappers.latency import LatencyStore
    from tessarr.stores.wrappers.logging import LoggingStore
    from tessarr.stores.wrappers.prefix import PrefixStore
    from tessarr.stores.wrappers.read_only import ReadOnlyStore
    from tessarr.stores.wrappers.retry import RetryStore
    from tessarr.stores.zip.remote import RemoteZipStore
    from tessarr.stores.zip.store import ZipStore

_HOMES = {
    "stores.base": "Store ConditionalStore ANY",
    "stores.asynchronous": "AsyncStore to_async to_sync",
    "stores.path": "StorePath",
    "stores.url": "StoreLike store_from same_place",
    "stores.local.store": "LocalStore",
    "stores.memory.store": "MemoryStore ManagedMemoryStore",
    "stores.zip.store": "ZipStore",
    "stores.memory.mapping": "MappingStore KVStore DictStore",
    "stores.wrappers.base": "WrapperStore ForwardingStore",
    "stores.wrappers.logging": "LoggingStore",
    "stores.wrappers.counting": "CountingStore",
    "stores.wrappers.latency": "LatencyStore",
    "stores.wrappers.prefix": "PrefixStore",
    "stores.wrappers.read_only": "ReadOnlyStore",
    "stores.local.zarr2": "DirectoryStore NestedDirectoryStore TempStore atexit_rmtree",
    "stores.remote.fsspec": "FsspecStore",
    "stores.remote.obstore.store": "ObjectStore",
    "stores.wrappers.cache": "CacheStore LRUStoreCache",
    "stores.wrappers.retry": "RetryStore",
    "stores.transformed.checksummed": "ChecksummingStore",
    "stores.transformed.normalized": "NormalizingStore",
    "stores.virtual.reference": "ReferenceStore",
    "stores.zip.remote": "RemoteZipStore",
    "stores.virtual.zarr_python": "ZarrPythonStore",
    "stores.database.sqlite": "SQLiteStore",
    "stores.database.lmdb": "LMDBStore",
    "stores.database.dbm": "DBMStore",
    "stores.database.redis": "RedisStore",
    "stores.database.mongodb": "MongoDBStore",
    "stores.wrappers.consolidated": "ConsolidatedMetadataStore",
    "stores.virtual.unsupported": "GpuMemoryStore",
    "stores.virtual.n5": "N5FSStore N5Store",
    "stores.virtual.precomputed": "PrecomputedStore",
    "facade.zarr2.storage": (
        "ABSStore FSStore listdir rmdir rename getsize contains_array contains_group init_array init_group migrate_1to2"
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "ABSStore", "ANY", "AsyncStore", "CacheStore", "ChecksummingStore", "ConditionalStore", "ConsolidatedMetadataStore",
    "CountingStore", "DBMStore", "DictStore", "DirectoryStore", "FSStore", "ForwardingStore", "FsspecStore",
    "GpuMemoryStore", "KVStore", "LMDBStore", "LRUStoreCache", "LatencyStore", "LocalStore", "LoggingStore",
    "ManagedMemoryStore", "MappingStore", "MemoryStore", "MongoDBStore", "N5FSStore", "N5Store", "NestedDirectoryStore",
    "NormalizingStore", "ObjectStore", "PrecomputedStore", "PrefixStore", "ReadOnlyStore", "RedisStore",
    "ReferenceStore", "RemoteZipStore", "RetryStore", "SQLiteStore", "Store", "StoreLike", "StorePath", "TempStore",
    "WrapperStore", "ZarrPythonStore", "ZipStore", "atexit_rmtree", "contains_array", "contains_group", "getsize",
    "init_array", "init_group", "listdir", "migrate_1to2", "rename", "rmdir", "same_place", "store_from", "to_async",
    "to_sync",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tessarr.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
