"""zarr-python's ``zarr.abc.buffer``; see `tessarr.facade.zarr3.abc.buffer`."""

from tessarr.facade.zarr3.abc import buffer as _home
from tessarr.facade.zarr3.abc.buffer import *  # noqa: F403

__all__ = _home.__all__
