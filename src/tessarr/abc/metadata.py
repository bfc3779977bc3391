"""zarr-python's ``zarr.abc.metadata``; see `tessarr.facade.zarr3.abc.metadata`."""

from tessarr.facade.zarr3.abc import metadata as _home
from tessarr.facade.zarr3.abc.metadata import *  # noqa: F403

__all__ = _home.__all__
