"""zarr-python's ``zarr.core.dtype.npy.time``."""

from tessarr.dtype import DateTime64, TimeDelta64

__all__ = ["DateTime64", "TimeDelta64"]
