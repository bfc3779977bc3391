"""zarr-python's ``zarr.convenience``; see `tessarr.facade.zarr3.convenience`."""

from tessarr.facade.zarr3 import convenience as _home
from tessarr.facade.zarr3.convenience import *  # noqa: F403

__all__ = _home.__all__
