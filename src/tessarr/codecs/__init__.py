"""Codecs: how a chunk becomes stored bytes and back. One file per name of the specification.

The classes are imported on first use, so that looking at this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessarr.codecs import numcodecs as numcodecs
    from tessarr.codecs.bitround import BitRoundCodec as BitRoundCodec
    from tessarr.codecs.blosc import BloscCodec as BloscCodec
    from tessarr.codecs.bytes import BytesCodec as BytesCodec
    from tessarr.codecs.cast_value import CastValue as CastValue
    from tessarr.codecs.cast_value import CastValueCodec as CastValueCodec
    from tessarr.codecs.crc32c import Crc32cCodec as Crc32cCodec
    from tessarr.codecs.enums import BloscCname as BloscCname
    from tessarr.codecs.enums import BloscShuffle as BloscShuffle
    from tessarr.codecs.enums import Endian as Endian
    from tessarr.codecs.enums import ShardingCodecIndexLocation as ShardingCodecIndexLocation
    from tessarr.codecs.gzip import GzipCodec as GzipCodec
    from tessarr.codecs.packbits import PackBitsCodec as PackBitsCodec
    from tessarr.codecs.reshape import ReshapeCodec as ReshapeCodec
    from tessarr.codecs.scale_offset import ScaleOffset as ScaleOffset
    from tessarr.codecs.scale_offset import ScaleOffsetCodec as ScaleOffsetCodec
    from tessarr.codecs.sharding import ShardingCodec as ShardingCodec
    from tessarr.codecs.transpose import TransposeCodec as TransposeCodec
    from tessarr.codecs.vlen import VLenBytesCodec as VLenBytesCodec
    from tessarr.codecs.vlen import VLenUTF8Codec as VLenUTF8Codec
    from tessarr.codecs.zstd import ZstdCodec as ZstdCodec

_HOME = {
    "BytesCodec": "bytes",
    "TransposeCodec": "transpose",
    "ShardingCodec": "sharding",
    "BloscCodec": "blosc",
    "GzipCodec": "gzip",
    "ZstdCodec": "zstd",
    "Crc32cCodec": "crc32c",
    "VLenUTF8Codec": "vlen",
    "VLenBytesCodec": "vlen",
    "PackBitsCodec": "packbits",
    "BitRoundCodec": "bitround",
    "ScaleOffsetCodec": "scale_offset",
    "ScaleOffset": "scale_offset",
    "CastValueCodec": "cast_value",
    "CastValue": "cast_value",
    "ReshapeCodec": "reshape",
    "BloscShuffle": "enums",
    "BloscCname": "enums",
    "Endian": "enums",
    "ShardingCodecIndexLocation": "enums",
}

__all__ = [*_HOME, "numcodecs"]


def __getattr__(name: str) -> Any:
    if name == "numcodecs":
        return import_module("tessarr.codecs.numcodecs")
    if name == "get_codec":  # zarr-python 2's
        return import_module("numcodecs").get_codec
    if name not in _HOME:
        numcodecs = import_module("tessarr.codecs.numcodecs")
        if name in numcodecs.V3_NAMES:  # zarr-python has these here too
            return getattr(numcodecs, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
