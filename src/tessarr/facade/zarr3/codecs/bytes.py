"""zarr-python's ``zarr.codecs.bytes``."""

import sys
from typing import Final, Literal

from tessarr.codecs import BytesCodec
from tessarr.codecs import Endian as _Endian
from tessarr.facade.zarr3._enumerations import Endian

default_system_endian = _Endian(sys.byteorder)

EndianLiteral = Literal["little", "big"]
ENDIAN: Final = ("little", "big")

__all__ = ["ENDIAN", "BytesCodec", "Endian", "EndianLiteral", "default_system_endian"]
