"""zarr-python's ``zarr.dtype``; see `tessarr.facade.zarr3.dtype`."""

from tessarr.facade.zarr3 import dtype as _home
from tessarr.facade.zarr3.dtype import *  # noqa: F403

__all__ = _home.__all__
