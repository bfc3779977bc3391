"""zarr-python's ``zarr.codecs.numcodecs``."""

from __future__ import annotations

import importlib
from typing import Any

import tessarr.codecs.numcodecs as _ours

__all__ = list(_ours.V3_NAMES)


def __getattr__(name: str) -> Any:
    if name == "_codecs":
        return importlib.import_module("tessarr.facade.zarr3.codecs.numcodecs._codecs")
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "_codecs"})
