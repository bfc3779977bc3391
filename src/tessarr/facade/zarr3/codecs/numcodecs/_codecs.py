"""zarr-python's ``zarr.codecs.numcodecs._codecs``."""

from __future__ import annotations

import importlib
from typing import Any

import tessarr.codecs.numcodecs as _ours

__all__ = list(_ours.V3_NAMES)
_BASES = {
    "_NumcodecsCodec": "NumcodecsCodec",
    "_NumcodecsBytesBytesCodec": "_Bytes",
    "_NumcodecsArrayArrayCodec": "_Elements",
    "_NumcodecsArrayBytesCodec": "_Numbers",
    "_NumcodecsChecksumCodec": "_Bytes",
}
"""zarr-python's names of the base classes."""


def __getattr__(name: str) -> Any:
    if name in _BASES:
        return getattr(importlib.import_module("tessarr.codecs.numcodecs.v3"), _BASES[name])
    if name == "_codecs":
        return importlib.import_module("tessarr.facade.zarr3.codecs.numcodecs._codecs")
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_BASES})
