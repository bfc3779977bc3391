"""Codecs: how a chunk becomes stored bytes and back. One file per name of the specification, in a folder per kind.

`blosc`, `bytes`, `gzip`, `transpose` and `zstd` re-export codecs under the module names of zarr-python.

The classes are imported on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tessarr.codecs import numcodecs as numcodecs
    from tessarr.codecs.array_to_array.bitround import BitRoundCodec as BitRoundCodec
    from tessarr.codecs.array_to_array.cast_value import CastValue as CastValue
    from tessarr.codecs.array_to_array.cast_value import CastValueCodec as CastValueCodec
    from tessarr.codecs.array_to_array.reshape import ReshapeCodec as ReshapeCodec
    from tessarr.codecs.array_to_array.scale_offset import ScaleOffset as ScaleOffset
    from tessarr.codecs.array_to_array.scale_offset import ScaleOffsetCodec as ScaleOffsetCodec
    from tessarr.codecs.array_to_array.singleton_dim import SingletonDimCodec as SingletonDimCodec
    from tessarr.codecs.array_to_array.transpose import TransposeCodec as TransposeCodec
    from tessarr.codecs.array_to_bytes.bytes import BytesCodec as BytesCodec
    from tessarr.codecs.array_to_bytes.bytes import Endian as Endian
    from tessarr.codecs.array_to_bytes.clipped import ClippedCodec as ClippedCodec
    from tessarr.codecs.array_to_bytes.compressed_segmentation import (
        CompressedSegmentationCodec as CompressedSegmentationCodec,
    )
    from tessarr.codecs.array_to_bytes.jpeg import JpegCodec as JpegCodec
    from tessarr.codecs.array_to_bytes.n5_default import N5DefaultCodec as N5DefaultCodec
    from tessarr.codecs.array_to_bytes.n5_varlen import N5VarlenCodec as N5VarlenCodec
    from tessarr.codecs.array_to_bytes.packbits import PackBitsCodec as PackBitsCodec
    from tessarr.codecs.array_to_bytes.vlen import VLenBytesCodec as VLenBytesCodec
    from tessarr.codecs.array_to_bytes.vlen import VLenUTF8Codec as VLenUTF8Codec
    from tessarr.codecs.array_to_bytes.zfp import ZfpCodec as ZfpCodec
    from tessarr.codecs.bytes_to_bytes.blosc import BloscCname as BloscCname
    from tessarr.codecs.bytes_to_bytes.blosc import BloscCodec as BloscCodec
    from tessarr.codecs.bytes_to_bytes.blosc import BloscShuffle as BloscShuffle
    from tessarr.codecs.bytes_to_bytes.conditional import ConditionalCodec as ConditionalCodec
    from tessarr.codecs.bytes_to_bytes.crc32c import Crc32cCodec as Crc32cCodec
    from tessarr.codecs.bytes_to_bytes.gzip import GzipCodec as GzipCodec
    from tessarr.codecs.bytes_to_bytes.lzw import LzwCodec as LzwCodec
    from tessarr.codecs.bytes_to_bytes.pad import PadCodec as PadCodec
    from tessarr.codecs.bytes_to_bytes.zstd import ZstdCodec as ZstdCodec
    from tessarr.codecs.sharding import ShardingCodec as ShardingCodec
    from tessarr.codecs.sharding import ShardingCodecIndexLocation as ShardingCodecIndexLocation

_HOME = {
    "BytesCodec": "array_to_bytes.bytes",
    "TransposeCodec": "array_to_array.transpose",
    "ShardingCodec": "sharding",
    "BloscCodec": "bytes_to_bytes.blosc",
    "GzipCodec": "bytes_to_bytes.gzip",
    "ZstdCodec": "bytes_to_bytes.zstd",
    "Crc32cCodec": "bytes_to_bytes.crc32c",
    "VLenUTF8Codec": "array_to_bytes.vlen",
    "VLenBytesCodec": "array_to_bytes.vlen",
    "PackBitsCodec": "array_to_bytes.packbits",
    "BitRoundCodec": "array_to_array.bitround",
    "ScaleOffsetCodec": "array_to_array.scale_offset",
    "ScaleOffset": "array_to_array.scale_offset",
    "CastValueCodec": "array_to_array.cast_value",
    "CastValue": "array_to_array.cast_value",
    "ReshapeCodec": "array_to_array.reshape",
    "SingletonDimCodec": "array_to_array.singleton_dim",
    "ZfpCodec": "array_to_bytes.zfp",
    "N5DefaultCodec": "array_to_bytes.n5_default",
    "N5VarlenCodec": "array_to_bytes.n5_varlen",
    "ClippedCodec": "array_to_bytes.clipped",
    "CompressedSegmentationCodec": "array_to_bytes.compressed_segmentation",
    "JpegCodec": "array_to_bytes.jpeg",
    "ConditionalCodec": "bytes_to_bytes.conditional",
    "PadCodec": "bytes_to_bytes.pad",
    "LzwCodec": "bytes_to_bytes.lzw",
    "BloscShuffle": "bytes_to_bytes.blosc",
    "BloscCname": "bytes_to_bytes.blosc",
    "Endian": "array_to_bytes.bytes",
    "ShardingCodecIndexLocation": "sharding",
}

__all__ = [*_HOME, "numcodecs"]


def __getattr__(name: str) -> Any:
    if name == "numcodecs":
        return import_module("tessarr.codecs.numcodecs")
    if name == "get_codec":  # zarr-python 2's
        return import_module("tessarr.common.numcodecs").numcodecs.get_codec
    if name not in _HOME:
        numcodecs = import_module("tessarr.codecs.numcodecs")
        if name in numcodecs.V3_NAMES:  # zarr-python has these here too
            return getattr(numcodecs, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
