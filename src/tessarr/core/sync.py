"""zarr-python's ``zarr.core.sync``; see `tessarr.facade.zarr3.core.sync`."""

from tessarr.facade.zarr3.core import sync as _home
from tessarr.facade.zarr3.core.sync import *  # noqa: F403

__all__ = _home.__all__
