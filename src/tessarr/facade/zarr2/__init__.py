"""zarr-python 2's ``zarr``: the package that ``import zarr`` returns after ``tessarr.as_zarr.install(version=2)``."""

from __future__ import annotations

import importlib
from typing import Any

from tessarr.facade import zarr3

_SUBMODULES = frozenset(
    """
    attrs codecs context convenience core creation errors hierarchy indexing meta n5 storage sync util
    """.split()  # noqa: SIM905
)
_NAMES = {
    "tessarr.facade.zarr2.storage": (
        "ABSStore DBMStore DictStore DirectoryStore FSStore KVStore LMDBStore LRUStoreCache MemoryStore MongoDBStore N5FSStore "
        "N5Store NestedDirectoryStore RedisStore SQLiteStore TempStore ZipStore init_store"
    ),
    "tessarr.facade.zarr2.sync": "ProcessSynchronizer ThreadSynchronizer",
    "tessarr.facade.zarr2.codecs": (
        "codec_registry blosc Blosc Zlib BZ2 LZMA LZ4 Zstd GZip Delta FixedScaleOffset Quantize PackBits Categorize AsType"
    ),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted({*zarr3.__all__, *_HOME})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in zarr3.__all__:
        return getattr(zarr3, name)
    raise AttributeError(f"module 'zarr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
