"""zarr-python's ``zarr.codecs.cast_value``."""

from tessarr.codecs import CastValue, CastValueCodec

__all__ = ["CastValue", "CastValueCodec"]
