"""zarr-python's ``zarr.codecs.zstd``."""

from tessarr.codecs import ZstdCodec

__all__ = ["ZstdCodec"]
