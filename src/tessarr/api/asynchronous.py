"""zarr-python's ``zarr.api.asynchronous``; see `tessarr.facade.zarr3.api.asynchronous`."""

from tessarr.facade.zarr3.api import asynchronous as _home
from tessarr.facade.zarr3.api.asynchronous import *  # noqa: F403

AsyncArray = _home.AsyncArray
AsyncGroup = _home.AsyncGroup

__all__ = ["AsyncArray", "AsyncGroup"]
__all__ += _home.__all__
