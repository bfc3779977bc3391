"""zarr-python's ``zarr.core.buffer``; see `tessarr.facade.zarr3.core.buffer`."""

from tessarr.facade.zarr3.core import buffer as _home
from tessarr.facade.zarr3.core.buffer import *  # noqa: F403

__all__ = _home.__all__
