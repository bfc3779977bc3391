"""zarr-python's ``zarr.core.dtype.npy.int``."""

from tessarr.facade.zarr3.dtype import Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64

__all__ = ["Int16", "Int32", "Int64", "Int8", "UInt16", "UInt32", "UInt64", "UInt8"]
