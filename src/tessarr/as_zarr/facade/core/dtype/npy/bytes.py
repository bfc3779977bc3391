"""zarr-python's ``zarr.core.dtype.npy.bytes``."""

from tessarr.dtype import NullTerminatedBytes, RawBytes, VariableLengthBytes

__all__ = ["NullTerminatedBytes", "RawBytes", "VariableLengthBytes"]
