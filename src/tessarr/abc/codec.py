"""The three kinds of codec, under zarr-python's names."""

from tessarr.codecs.base import ArrayToArray as ArrayArrayCodec
from tessarr.codecs.base import ArrayToBytes as ArrayBytesCodec
from tessarr.codecs.base import BytesToBytes as BytesBytesCodec
from tessarr.codecs.base import Codec

BaseCodec = Codec

__all__ = ["ArrayArrayCodec", "ArrayBytesCodec", "BaseCodec", "BytesBytesCodec", "Codec"]
