"""zarr-python's ``zarr.core.dtype.npy.time``."""

from tessarr.facade.zarr3.dtype import DateTime64, TimeDelta64

__all__ = ["DateTime64", "TimeDelta64"]
