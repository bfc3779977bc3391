"""zarr-python's ``zarr.core.dtype.npy.structured``."""

from tessarr.dtype import Struct, Structured

__all__ = ["Struct", "Structured"]
