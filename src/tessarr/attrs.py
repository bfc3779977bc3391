"""zarr-python 2's ``zarr.attrs``; see `tessarr.facade.zarr2.attrs`."""

from tessarr.facade.zarr2 import attrs as _home
from tessarr.facade.zarr2.attrs import *  # noqa: F403

__all__ = _home.__all__
