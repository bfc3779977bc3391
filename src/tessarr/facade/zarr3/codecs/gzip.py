"""zarr-python's ``zarr.codecs.gzip``."""

from tessarr.codecs import GzipCodec

__all__ = ["GzipCodec"]
