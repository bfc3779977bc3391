"""The numcodecs classes that zarr-python 2 exported at its top level (``zarr.Blosc``, ``zarr.Zlib`` …)."""

from __future__ import annotations

from typing import Any

_NAMES = frozenset(
    "blosc Blosc Zlib BZ2 LZMA LZ4 Zstd GZip Delta FixedScaleOffset Quantize PackBits Categorize AsType".split()  # noqa: SIM905 - a list of words
)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(name)
    import numcodecs

    return getattr(numcodecs, name)
