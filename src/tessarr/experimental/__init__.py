"""zarr-python's ``zarr.experimental``; nothing here is experimental in tessarr."""

from __future__ import annotations

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in {"cache_store"}:
        return importlib.import_module(f"tessarr.experimental.{name}")
    raise AttributeError(f"module 'tessarr.experimental' has no attribute {name!r}")
