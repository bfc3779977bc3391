"""Every store by name, for users: zarr-python 3's names, zarr-python 2's names, and ours.

>>> store = MemoryStore()
>>> StorePath(store, "group") / "array" == StorePath(store, "group/array")
True

Each name is imported when it is first asked for; a store whose package is missing says which to install then.
`listdir`, `rmdir`, `rename`, `getsize`, `contains_array`, `contains_group`, `init_array` and `init_group` are
zarr-python 2's functions on stores.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessarr.core.oldnames import (
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
    from tessarr.stores.base import Store
    from tessarr.stores.consolidated import ConsolidatedMetadataStore
    from tessarr.stores.dbm import DBMStore
    from tessarr.stores.directories import DirectoryStore, NestedDirectoryStore, TempStore, atexit_rmtree
    from tessarr.stores.fsspec import FsspecStore
    from tessarr.stores.layers import CacheStore, LRUStoreCache
    from tessarr.stores.lmdb import LMDBStore
    from tessarr.stores.local import LocalStore
    from tessarr.stores.mapping import DictStore, KVStore, MappingStore
    from tessarr.stores.memory import ManagedMemoryStore, MemoryStore
    from tessarr.stores.mongodb import MongoDBStore
    from tessarr.stores.object import ObjectStore
    from tessarr.stores.path import StorePath
    from tessarr.stores.redis import RedisStore
    from tessarr.stores.reference import ReferenceStore
    from tessarr.stores.remote_zip import RemoteZipStore
    from tessarr.stores.retrying import RetryStore
    from tessarr.stores.sqlite import SQLiteStore
    from tessarr.stores.swapping import ConditionalStore
    from tessarr.stores.unsupported import GpuMemoryStore, N5FSStore, N5Store
    from tessarr.stores.url import StoreLike, same_place, store_from
    from tessarr.stores.wrappers import (
        CountingStore,
        LatencyStore,
        LoggingStore,
        PrefixStore,
        ReadOnlyStore,
        WrapperStore,
    )
    from tessarr.stores.zarr_python import ZarrPythonStore
    from tessarr.stores.zip import ZipStore

_HOMES = {
    "stores.base": "Store",
    "stores.path": "StorePath",
    "stores.url": "StoreLike store_from same_place",
    "stores.local": "LocalStore",
    "stores.memory": "MemoryStore ManagedMemoryStore",
    "stores.zip": "ZipStore",
    "stores.mapping": "MappingStore KVStore DictStore",
    "stores.wrappers": "WrapperStore LoggingStore CountingStore LatencyStore PrefixStore ReadOnlyStore",
    "stores.directories": "DirectoryStore NestedDirectoryStore TempStore atexit_rmtree",
    "stores.fsspec": "FsspecStore",
    "stores.object": "ObjectStore",
    "stores.layers": "CacheStore LRUStoreCache",
    "stores.retrying": "RetryStore",
    "stores.reference": "ReferenceStore",
    "stores.remote_zip": "RemoteZipStore",
    "stores.zarr_python": "ZarrPythonStore",
    "stores.sqlite": "SQLiteStore",
    "stores.swapping": "ConditionalStore",
    "stores.lmdb": "LMDBStore",
    "stores.dbm": "DBMStore",
    "stores.redis": "RedisStore",
    "stores.mongodb": "MongoDBStore",
    "stores.consolidated": "ConsolidatedMetadataStore",
    "stores.unsupported": "GpuMemoryStore N5FSStore N5Store",
    "core.oldnames": "listdir rmdir rename getsize contains_array contains_group init_array init_group migrate_1to2",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "ABSStore", "CacheStore", "ConditionalStore", "ConsolidatedMetadataStore", "CountingStore", "DBMStore", "DictStore",
    "DirectoryStore", "FSStore", "FsspecStore", "GpuMemoryStore", "KVStore", "LMDBStore", "LRUStoreCache",
    "LatencyStore", "LocalStore", "LoggingStore", "ManagedMemoryStore", "MappingStore", "MemoryStore",
    "MongoDBStore", "N5FSStore", "N5Store", "NestedDirectoryStore", "ObjectStore", "PrefixStore", "ReadOnlyStore",
    "RedisStore", "ReferenceStore", "RemoteZipStore", "RetryStore", "SQLiteStore", "Store", "StoreLike",
    "StorePath", "TempStore", "WrapperStore", "ZarrPythonStore", "ZipStore", "atexit_rmtree", "contains_array",
    "contains_group", "getsize", "init_array", "init_group", "listdir", "migrate_1to2", "rename", "rmdir",
    "same_place", "store_from",
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


def FSStore(  # noqa: N802 - the name in zarr-python 2
    url: str, *, mode: str = "w", dimension_separator: str | None = None, **storage_options: Any
) -> Store:
    """The store at a URL, called as zarr-python 2's ``FSStore``; `storage_options` are fsspec's.

    ``mode="r"`` makes it read-only; no mode deletes anything. New v2 arrays take `dimension_separator`. ``check``,
    ``create`` and ``auto_mkdir`` change nothing; ``normalize_keys``, ``key_separator``, ``exceptions`` and
    ``missing_exceptions`` are refused unless they say what is the case anyway.
    """
    for name in ("check", "create", "auto_mkdir"):
        storage_options.pop(name, None)
    for name, defaults in _FSSTORE_OPTIONS.items():
        if name in storage_options and storage_options.pop(name) not in defaults:
            raise ValueError(f"FSStore's option {name!r} is not supported; leave it out")
    from tessarr.stores.url import store_from

    store: Any = store_from(url, mode="r" if mode == "r" else None, storage_options=storage_options or None)[0]
    if dimension_separator is not None:
        store.dimension_separator = dimension_separator
    return store  # type: ignore[no-any-return]


def ABSStore(  # noqa: N802 - the name in zarr-python 2
    container: str,
    prefix: str = "",
    account_name: str | None = None,
    account_key: str | None = None,
    *,
    read_only: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Store:
    """The store in an Azure container, called as zarr-python 2's ``ABSStore``."""
    from tessarr.stores.remote import open_url

    options = {"account_name": account_name, "account_key": account_key, **(storage_options or {})}
    given = {name: value for name, value in options.items() if value is not None}
    return open_url(f"az://{container}/{prefix}".rstrip("/"), storage_options=given, read_only=read_only)


_FSSTORE_OPTIONS: dict[str, tuple[object, ...]] = {
    "normalize_keys": (False,),
    "key_separator": (None, "."),
    "exceptions": (None,),
    "missing_exceptions": (None,),
}
