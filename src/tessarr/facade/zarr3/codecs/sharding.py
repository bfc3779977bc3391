"""zarr-python's ``zarr.codecs.sharding``."""

from tessarr.codecs import ShardingCodec, ShardingCodecIndexLocation

MAX_UINT_64 = 2**64 - 1

__all__ = ["MAX_UINT_64", "ShardingCodec", "ShardingCodecIndexLocation"]
