"""zarr-python's ``zarr.codecs.sharding``."""

from typing import Final, Literal

from tessarr.codecs import ShardingCodec
from tessarr.facade.zarr3._enumerations import ShardingCodecIndexLocation

MAX_UINT_64 = 2**64 - 1

IndexLocation = Literal["start", "end"]
INDEX_LOCATION: Final = ("start", "end")

SubchunkWriteOrder = Literal["morton", "unordered", "lexicographic", "colexicographic"]
SUBCHUNK_WRITE_ORDER: Final = ("morton", "unordered", "lexicographic", "colexicographic")

__all__ = [
    "INDEX_LOCATION",
    "MAX_UINT_64",
    "SUBCHUNK_WRITE_ORDER",
    "IndexLocation",
    "ShardingCodec",
    "ShardingCodecIndexLocation",
    "SubchunkWriteOrder",
]
