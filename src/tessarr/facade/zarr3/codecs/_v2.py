"""zarr-python's ``zarr.codecs._v2``."""

from tessarr.codecs.numcodecs.v2 import V2Codec

__all__ = ["V2Codec"]
