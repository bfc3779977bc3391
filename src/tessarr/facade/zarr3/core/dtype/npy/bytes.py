"""zarr-python's ``zarr.core.dtype.npy.bytes``."""

from tessarr.facade.zarr3.dtype import NullTerminatedBytes, RawBytes, VariableLengthBytes

__all__ = ["NullTerminatedBytes", "RawBytes", "VariableLengthBytes"]
