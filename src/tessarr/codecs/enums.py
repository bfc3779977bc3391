"""zarr-python's enumerations of codec options. Each member is the string that documents hold, and may stand for it.

>>> from tessarr.codecs import BloscCodec
>>> BloscCodec(shuffle=BloscShuffle.bitshuffle).shuffle == "bitshuffle"
True
"""

from __future__ import annotations

from enum import StrEnum


class BloscShuffle(StrEnum):
    """``shuffle`` of `BloscCodec`."""

    noshuffle = "noshuffle"
    shuffle = "shuffle"
    bitshuffle = "bitshuffle"


class BloscCname(StrEnum):
    """``cname`` of `BloscCodec`."""

    lz4 = "lz4"
    lz4hc = "lz4hc"
    blosclz = "blosclz"
    zstd = "zstd"
    snappy = "snappy"
    zlib = "zlib"


class Endian(StrEnum):
    """``endian`` of `BytesCodec`."""

    big = "big"
    little = "little"


class ShardingCodecIndexLocation(StrEnum):
    """``index_location`` of `ShardingCodec`."""

    start = "start"
    end = "end"
