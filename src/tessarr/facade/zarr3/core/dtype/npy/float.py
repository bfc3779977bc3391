"""zarr-python's ``zarr.core.dtype.npy.float``."""

from tessarr.facade.zarr3.dtype import Float16, Float32, Float64

__all__ = ["Float16", "Float32", "Float64"]
