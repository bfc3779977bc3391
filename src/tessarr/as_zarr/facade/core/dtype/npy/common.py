"""zarr-python's ``zarr.core.dtype.npy.common``."""

from tessarr.as_zarr.facade.core.dtype.common import *  # noqa: F403
