"""zarr-python's ``zarr.api``: the synchronous functions, and the same as coroutines."""

from __future__ import annotations

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in {"asynchronous", "synchronous"}:
        return importlib.import_module(f"tessarr.api.{name}")
    raise AttributeError(f"module 'tessarr.api' has no attribute {name!r}")
