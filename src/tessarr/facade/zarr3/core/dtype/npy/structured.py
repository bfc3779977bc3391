"""zarr-python's ``zarr.core.dtype.npy.structured``."""

from tessarr.facade.zarr3.dtype import Struct, Structured

__all__ = ["Struct", "Structured"]
