"""zarr-python 2's ``zarr.sync``; see `tessarr.facade.zarr2.sync`."""

from tessarr.facade.zarr2 import sync as _home
from tessarr.facade.zarr2.sync import *  # noqa: F403

__all__ = _home.__all__
