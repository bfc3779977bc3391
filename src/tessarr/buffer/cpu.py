"""zarr-python's ``zarr.buffer.cpu``; see `tessarr.facade.zarr3.buffer.cpu`."""

from tessarr.facade.zarr3.buffer import cpu as _home
from tessarr.facade.zarr3.buffer.cpu import *  # noqa: F403

__all__ = _home.__all__
