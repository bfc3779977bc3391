"""zarr-python's ``zarr.codecs.bytes``."""

import sys

from tessarr.codecs import BytesCodec, Endian

default_system_endian = Endian(sys.byteorder)

__all__ = ["BytesCodec", "Endian", "default_system_endian"]
