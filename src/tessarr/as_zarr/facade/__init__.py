"""zarr-python's ``zarr``: what ``import zarr`` gives while `tessarr.as_zarr` is installed."""

from __future__ import annotations

import importlib
from typing import Any

import tessarr

_SUBMODULES = frozenset(
    "abc api buffer codecs convenience core creation dtype errors experimental metadata registry storage testing types".split()  # noqa: SIM905
)
_NAMES = (
    "Array",
    "AsyncArray",
    "AsyncGroup",
    "Group",
    "config",
    "array",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "print_debug_info",
    "save",
    "save_array",
    "save_group",
    "set_format",
    "tree",
    "zeros",
    "zeros_like",
)

__all__ = sorted([*_NAMES, "__version__"])
__version__ = tessarr.__version__


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(tessarr, name)
    raise AttributeError(f"module 'zarr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
