"""zarr-python's ``zarr.registry``."""

from __future__ import annotations

from typing import Any

import tessarr.registry as _ours


def fully_qualified_name(cls: type) -> str:
    """Return the name by which settings name a class: that of its module, a point, and its qualified name."""
    return f"{cls.__module__}.{cls.__qualname__}"


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)
