"""zarr-python's ``zarr.core.dtype``."""

from __future__ import annotations

import importlib
from typing import Any

import tessarr.facade.zarr3.dtype as _ours


def __getattr__(name: str) -> Any:
    if name in ("common", "npy", "registry", "wrapper"):
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(_ours, name)
