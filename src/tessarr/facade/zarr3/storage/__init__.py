"""zarr-python's ``zarr.storage``: stores with zarr-python's interface that call tessarr's stores."""

from __future__ import annotations

import importlib
from typing import Any

from tessarr.facade.zarr3.storage._common import StoreLike, StorePath
from tessarr.facade.zarr3.storage._local import LocalStore
from tessarr.facade.zarr3.storage._logging import LoggingStore
from tessarr.facade.zarr3.storage._memory import GpuMemoryStore, ManagedMemoryStore, MemoryStore
from tessarr.facade.zarr3.storage._wrapper import WrapperStore
from tessarr.facade.zarr3.storage._zip import ZipStore

_LAZY = {"FsspecStore": "_fsspec", "ObjectStore": "_obstore"}

__all__ = [
    "FsspecStore",
    "GpuMemoryStore",
    "LocalStore",
    "LoggingStore",
    "ManagedMemoryStore",
    "MemoryStore",
    "ObjectStore",
    "StoreLike",
    "StorePath",
    "WrapperStore",
    "ZipStore",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
