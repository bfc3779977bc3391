"""zarr-python's ``zarr.core.sync_group``."""

from __future__ import annotations

from typing import Literal

from tessarr.core.array import Array
from tessarr.core.creation.shorthands import create_hierarchy
from tessarr.core.group import Group
from tessarr.core.open import open as open_node
from tessarr.stores.url import StoreLike
from tessarr.types import ZarrFormat

__all__ = ["create_hierarchy", "get_node"]


def get_node(store: StoreLike, path: str, zarr_format: ZarrFormat) -> Array | Group:
    """Open the array or group at `path`. Raises `NodeNotFoundError`, a `FileNotFoundError`, when there is none."""
    mode: Literal["r", "r+"] = "r" if getattr(store, "read_only", False) else "r+"
    return open_node(store, mode=mode, path=path, zarr_format=zarr_format)
