"""zarr-python's ``zarr.api.synchronous``; see `tessarr.facade.zarr3.api.synchronous`."""

from tessarr.facade.zarr3.api import synchronous as _home
from tessarr.facade.zarr3.api.synchronous import *  # noqa: F403

__all__ = _home.__all__
