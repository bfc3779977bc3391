"""zarr-python's ``zarr.codecs.blosc``."""

from typing import Final, Literal

from tessarr.codecs import BloscCodec
from tessarr.facade.zarr3._enumerations import BloscCname, BloscShuffle

Shuffle = BloscShuffle
CName = BloscCname

BloscShuffleLiteral = Literal["noshuffle", "shuffle", "bitshuffle"]
BLOSC_SHUFFLE: Final = ("noshuffle", "shuffle", "bitshuffle")

BloscCnameLiteral = Literal["lz4", "lz4hc", "blosclz", "snappy", "zlib", "zstd"]
BLOSC_CNAME: Final = ("lz4", "lz4hc", "blosclz", "snappy", "zlib", "zstd")

__all__ = [
    "BLOSC_CNAME",
    "BLOSC_SHUFFLE",
    "BloscCname",
    "BloscCnameLiteral",
    "BloscCodec",
    "BloscShuffle",
    "BloscShuffleLiteral",
]
