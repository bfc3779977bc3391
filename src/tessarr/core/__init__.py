"""Arrays, groups, and the functions that open and create them; zarr-python 2's ``zarr.core`` has `Array`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "Array":
        from tessarr.core.array import Array

        return Array
    raise AttributeError(f"module 'tessarr.core' has no attribute {name!r}")
