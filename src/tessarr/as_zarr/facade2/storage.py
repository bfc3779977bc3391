"""zarr-python 2's ``zarr.storage``."""

from __future__ import annotations

from typing import Any

import tessarr.storage as _ours
from tessarr.stores.base import Store as BaseStore

__all__ = [*_ours.__all__, "BaseStore"]


def __getattr__(name: str) -> Any:
    if name == "default_compressor":
        import numcodecs

        return numcodecs.Blosc()
    return getattr(_ours, name)
