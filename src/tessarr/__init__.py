"""tessarr: Zarr v1, v2 and v3 for Python. ``import tessarr as zarr`` runs code written for zarr-python.

>>> import tessarr
>>> z = tessarr.create_array({}, shape=(4, 4), chunks=(2, 2), dtype="float32")
>>> z[1, :] = 7
>>> float(z[...].sum())
28.0

Names are imported on first use, so that importing the package takes little time. The first two numbers of the
version are those of the zarr-python API that the package implements.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "3.4.0"

_BUILT_IN = "tessarr.built_in"
"""The module that has the names of the registry, which imports it for the first lookup."""
_HOME = {
    "core.array": "Array",
    "core.asynchronous.async_array": "AsyncArray",
    "core.asynchronous.async_group": "AsyncGroup",
    "core.array_parts.lazy_view": "View",
    "core.streams.appender": "Appender appender",
    "core.group": "Group",
    "settings": "config",
    "core.open": (
        "open open_array open_group open_consolidated create_group group "
        "open_async open_array_async open_group_async open_consolidated_async create_group_async group_async"
    ),
    "core.creation.arrays": "create create_array create_async create_array_async",
    "core.creation.shorthands": (
        "array empty zeros ones full empty_like zeros_like ones_like full_like open_like from_array save save_array "
        "save_group load tree create_hierarchy consolidate_metadata "
        "array_async empty_async zeros_async ones_async full_async empty_like_async zeros_like_async ones_like_async "
        "full_like_async open_like_async from_array_async save_async save_array_async save_group_async load_async "
        "tree_async create_hierarchy_async consolidate_metadata_async"
    ),
    "core.creation.n5": "open_n5 create_n5 open_n5_async create_n5_async",
    "core.creation.precomputed": "open_precomputed open_precomputed_async",
    "core.copy": "copy copy_all copy_store copy_async copy_all_async copy_store_async",
    "core.array_parts.read_many": "read_many read_many_async",
    "engine.native.chunk_cache": "chunk_cache_info clear_chunk_cache",
    "core.diagnostics": "print_debug_info set_format set_log_level",
    "facade.zarr2.storage": "init_store",
    "facade.zarr2.sync": "ThreadSynchronizer ProcessSynchronizer",
    "transactions.snapshot": "snapshot snapshot_async",
    "transactions.transaction": "transaction",
    "viewer.notebook": "view",
    "zarr_python.adopt": "accelerate",
    "storage": (
        "DirectoryStore NestedDirectoryStore TempStore ZipStore MemoryStore DictStore KVStore LRUStoreCache SQLiteStore "
        "DBMStore LMDBStore RedisStore MongoDBStore FSStore ABSStore N5Store N5FSStore"
    ),
    "facade.zarr2.codecs": "blosc Blosc Zlib BZ2 LZMA LZ4 Zstd GZip Delta FixedScaleOffset Quantize PackBits Categorize AsType",
}
_NAMES = {name: module for module, names in _HOME.items() for name in names.split()}
_DOORS = frozenset(
    "abc api as_zarr attrs buffer codecs convenience conventions core creation dask dtype errors experimental hierarchy "  # noqa: SIM905
    "model plan registry serve storage sync tools transactions virtual xarray zarr_python".split()
)

__all__ = sorted(
    [
        name
        for module, names in _HOME.items()
        if module != "storage" and not module.startswith("facade.")
        for name in names.split()
    ]
    + ["__version__"]
)


def __getattr__(name: str) -> Any:
    home = _NAMES.get(name)
    if home is not None:
        value = getattr(importlib.import_module(f"tessarr.{home}"), name)
    elif name in _DOORS:
        value = importlib.import_module(f"tessarr.{name}")
    else:
        raise AttributeError(f"module 'tessarr' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_NAMES, *_DOORS})


if TYPE_CHECKING:
    from tessarr.core.array import Array as Array
    from tessarr.core.array_parts.lazy_view import View as View
    from tessarr.core.array_parts.read_many import read_many as read_many
    from tessarr.core.array_parts.read_many import read_many_async as read_many_async
    from tessarr.core.asynchronous.async_array import AsyncArray as AsyncArray
    from tessarr.core.asynchronous.async_group import AsyncGroup as AsyncGroup
    from tessarr.core.copy import copy as copy
    from tessarr.core.copy import copy_all as copy_all
    from tessarr.core.copy import copy_store as copy_store
    from tessarr.core.creation.arrays import *  # noqa: F403
    from tessarr.core.creation.n5 import create_n5 as create_n5
    from tessarr.core.creation.n5 import create_n5_async as create_n5_async
    from tessarr.core.creation.n5 import open_n5 as open_n5
    from tessarr.core.creation.n5 import open_n5_async as open_n5_async
    from tessarr.core.creation.precomputed import open_precomputed as open_precomputed
    from tessarr.core.creation.precomputed import open_precomputed_async as open_precomputed_async
    from tessarr.core.creation.shorthands import *  # noqa: F403
    from tessarr.core.diagnostics import print_debug_info as print_debug_info
    from tessarr.core.diagnostics import set_format as set_format
    from tessarr.core.diagnostics import set_log_level as set_log_level
    from tessarr.core.group import Group as Group
    from tessarr.core.open import *  # noqa: F403
    from tessarr.core.streams.appender import Appender as Appender
    from tessarr.core.streams.appender import appender as appender
    from tessarr.engine.native.chunk_cache import chunk_cache_info as chunk_cache_info
    from tessarr.engine.native.chunk_cache import clear_chunk_cache as clear_chunk_cache
    from tessarr.settings import config as config
    from tessarr.transactions.snapshot import snapshot as snapshot
    from tessarr.transactions.snapshot import snapshot_async as snapshot_async
    from tessarr.transactions.transaction import transaction as transaction
    from tessarr.viewer.notebook import view as view
    from tessarr.zarr_python.adopt import accelerate as accelerate
