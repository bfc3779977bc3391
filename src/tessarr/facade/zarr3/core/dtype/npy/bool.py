"""zarr-python's ``zarr.core.dtype.npy.bool``."""

from tessarr.facade.zarr3.dtype import Bool

__all__ = ["Bool"]
