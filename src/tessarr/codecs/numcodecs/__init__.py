"""numcodecs: the codecs of Zarr v2, and the ``numcodecs.<id>`` names of v3.

The classes (``Blosc``, ``Zlib``, ``Delta``, …) are codecs of v3. For v2, `v2_compressor` and `v2_filters` read the
metadata, and `as_codec` takes numcodecs' own objects.

Source: numcodecs 0.16; zarr-extensions pull request 2.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessarr.codecs.numcodecs.v2 import UnknownV2Codec as UnknownV2Codec
    from tessarr.codecs.numcodecs.v2 import V2Codec as V2Codec
    from tessarr.codecs.numcodecs.v2 import as_codec as as_codec
    from tessarr.codecs.numcodecs.v2 import is_object as is_object
    from tessarr.codecs.numcodecs.v2 import v2_compressor as v2_compressor
    from tessarr.codecs.numcodecs.v2 import v2_config as v2_config
    from tessarr.codecs.numcodecs.v2 import v2_filters as v2_filters
    from tessarr.codecs.numcodecs.v3 import *  # noqa: F403

_V2 = ("v2_compressor", "v2_filters", "v2_config", "as_codec", "is_object", "V2Codec", "UnknownV2Codec")
V3_NAMES = (
    "Blosc", "LZ4", "Zstd", "Zlib", "GZip", "BZ2", "LZMA", "Shuffle", "Base64", "CRC32", "CRC32C", "Adler32",
    "Fletcher32", "JenkinsLookup3", "Delta", "FixedScaleOffset", "Quantize", "BitRound", "AsType", "PackBits", "PCodec",
    "ZFPY", "Pickle",
)  # fmt: skip

__all__ = [*_V2, *V3_NAMES]


def __getattr__(name: str) -> Any:
    if name in _V2:
        return getattr(import_module(f"{__name__}.v2"), name)
    if name in V3_NAMES:
        return getattr(import_module(f"{__name__}.v3"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
