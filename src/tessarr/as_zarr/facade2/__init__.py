"""zarr-python 2's ``zarr``: what ``import zarr`` gives after ``tessarr.as_zarr.install(version=2)``."""

from __future__ import annotations

import importlib
from typing import Any

import tessarr

_SUBMODULES = frozenset("attrs codecs convenience core creation errors hierarchy storage sync".split())  # noqa: SIM905

__all__ = list(tessarr.__all__)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(tessarr, name)


def __dir__() -> list[str]:
    return sorted({*dir(tessarr), *_SUBMODULES})
