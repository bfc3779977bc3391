"""zarr-python's ``zarr``: the package that ``import zarr`` returns while `tessarr.as_zarr` is installed."""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = frozenset(
    "abc api buffer codecs convenience core creation dtype errors experimental metadata registry storage testing types".split()  # noqa: SIM905
)
_NAMES = {
    "tessarr.core.asynchronous.async_array": "AsyncArray",
    "tessarr.core.asynchronous.async_group": "AsyncGroup",
    "tessarr.core.diagnostics": "print_debug_info set_format set_log_level",
    "tessarr.settings": "config",
    "tessarr.facade.zarr3.api.synchronous": (
        "Array Group array consolidate_metadata copy copy_all copy_store create create_array create_group create_hierarchy "
        "empty empty_like from_array full full_like group load ones ones_like open open_array open_consolidated open_group "
        "open_like save save_array save_group tree zeros zeros_like"
    ),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'zarr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
