"""zarr-python's ``zarr.codecs.bytes``."""

import sys
from typing import Final, Literal

from tessarr.codecs import BytesCodec, Endian

default_system_endian = Endian(sys.byteorder)

EndianLiteral = Literal["little", "big"]
ENDIAN: Final = ("little", "big")

__all__ = ["ENDIAN", "BytesCodec", "Endian", "EndianLiteral", "default_system_endian"]
