"""zarr-python's ``zarr.dtype``."""

from __future__ import annotations

from typing import Any

import tessarr.dtype as _ours
from tessarr.dtype import DataType

__all__ = ["ZDType", *(name for name in _ours.__all__ if name != "ZDType")]

ZDType = DataType


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)
