"""zarr-python's ``zarr.core.dtype.npy.string``."""

from tessarr.facade.zarr3.dtype import FixedLengthUTF32, VariableLengthUTF8

__all__ = ["FixedLengthUTF32", "VariableLengthUTF8"]
