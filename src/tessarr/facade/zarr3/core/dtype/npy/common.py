"""zarr-python's ``zarr.core.dtype.npy.common``."""

from tessarr.facade.zarr3.core.dtype.common import *  # noqa: F403
