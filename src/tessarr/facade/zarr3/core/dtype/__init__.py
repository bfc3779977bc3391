"""zarr-python's ``zarr.core.dtype``."""

from __future__ import annotations

import importlib
from typing import Any

import tessarr.facade.zarr3.dtype as _ours

__all__ = [*_ours.__all__, "get_data_type_from_json", "get_data_type_from_native_dtype"]

get_data_type_from_native_dtype = _ours.data_type_registry.match_dtype
get_data_type_from_json = _ours.data_type_registry.match_json


def __getattr__(name: str) -> Any:
    if name in ("common", "npy", "registry", "wrapper"):
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "common", "npy", "registry", "wrapper"})
