"""zarr-python's ``zarr.core.dtype``."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import tessarr.dtype

    return getattr(tessarr.dtype, name)
