"""zarr-python's ``zarr.abc.numcodec``; see `tessarr.facade.zarr3.abc.numcodec`."""

from tessarr.facade.zarr3.abc import numcodec as _home
from tessarr.facade.zarr3.abc.numcodec import *  # noqa: F403

__all__ = _home.__all__
