"""zarr-python's ``zarr.core.dtype.npy.bool``."""

from tessarr.dtype import Bool

__all__ = ["Bool"]
