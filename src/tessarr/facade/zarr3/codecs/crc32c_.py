"""zarr-python's ``zarr.codecs.crc32c_``."""

from tessarr.codecs import Crc32cCodec

__all__ = ["Crc32cCodec"]
