"""zarr-python's ``zarr.codecs.scale_offset``."""

from tessarr.codecs import ScaleOffset, ScaleOffsetCodec

__all__ = ["ScaleOffset", "ScaleOffsetCodec"]
