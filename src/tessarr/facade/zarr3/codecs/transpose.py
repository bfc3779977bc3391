"""zarr-python's ``zarr.codecs.transpose``."""

from tessarr.codecs import TransposeCodec

__all__ = ["TransposeCodec"]
