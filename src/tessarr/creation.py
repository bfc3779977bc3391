"""zarr-python's ``zarr.creation``; see `tessarr.facade.zarr3.creation`."""

from tessarr.facade.zarr3 import creation as _home
from tessarr.facade.zarr3.creation import *  # noqa: F403

__all__ = _home.__all__
