"""zarr-python's ``zarr.codecs``."""

from __future__ import annotations

import importlib
from typing import Any

import tessarr.codecs as _ours

_SUBMODULES = frozenset(
    [
        "_v2",
        "blosc",
        "bytes",
        "cast_value",
        "crc32c_",
        "gzip",
        "numcodecs",
        "scale_offset",
        "sharding",
        "transpose",
        "vlen_utf8",
        "zstd",
    ]
)
_ENUMERATIONS = frozenset(("BloscCname", "BloscShuffle", "Endian", "ShardingCodecIndexLocation"))

__all__ = [name for name in _ours.__all__ if name != "numcodecs"]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _ENUMERATIONS:
        return getattr(importlib.import_module("tessarr.facade.zarr3._enumerations"), name)
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES, *_ENUMERATIONS})
