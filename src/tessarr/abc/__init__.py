"""zarr-python's ``zarr.abc``: the contracts that extensions inherit."""

from __future__ import annotations

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in {"buffer", "codec", "metadata", "numcodec", "store"}:
        return importlib.import_module(f"tessarr.abc.{name}")
    raise AttributeError(f"module 'tessarr.abc' has no attribute {name!r}")
