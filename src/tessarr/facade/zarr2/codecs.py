"""zarr-python 2's ``zarr.codecs``: the codecs of numcodecs."""

from typing import Any

import tessarr.codecs

__all__ = (
    "AsType BZ2 Base64 BitRound Blosc CRC32 Categorize Delta FixedScaleOffset Fletcher32 GZip JSON LZ4 LZMA PackBits "  # noqa: SIM905
    "Pickle Quantize Shuffle VLenArray VLenBytes VLenUTF8 Zlib Zstd blosc get_codec".split()
)


def __getattr__(name: str) -> Any:
    from tessarr.common.numcodecs import numcodecs

    return getattr(numcodecs, name, None) or getattr(tessarr.codecs, name)
