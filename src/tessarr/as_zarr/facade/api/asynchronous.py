"""zarr-python's ``zarr.api.asynchronous``."""

from __future__ import annotations

from typing import Any

from tessarr.api import asynchronous as _ours

__all__ = list(_ours.__all__)


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)
