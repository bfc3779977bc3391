"""zarr-python 2's ``zarr.codecs``: the codecs of numcodecs."""

from typing import Any

import tessarr.codecs

__all__ = (
    "AsType BZ2 Base64 BitRound Blosc CRC32 Categorize Delta FixedScaleOffset Fletcher32 GZip JSON LZ4 LZMA PackBits "  # noqa: SIM905
    "Pickle Quantize Shuffle VLenArray VLenBytes VLenUTF8 Zlib Zstd blosc codec_registry get_codec".split()
)


def __getattr__(name: str) -> Any:
    from tessarr.common.numcodecs import numcodecs

    if name == "codec_registry":
        return numcodecs.registry.codec_registry
    return getattr(numcodecs, name, None) or getattr(tessarr.codecs, name)
