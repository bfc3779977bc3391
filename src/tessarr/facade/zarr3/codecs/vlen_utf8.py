"""zarr-python's ``zarr.codecs.vlen_utf8``."""

from tessarr.codecs import VLenBytesCodec, VLenUTF8Codec

__all__ = ["VLenBytesCodec", "VLenUTF8Codec"]
