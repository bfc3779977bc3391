"""zarr-python's ``zarr.core.common``; see `tessarr.facade.zarr3.core.common`."""

from tessarr.facade.zarr3.core import common as _home
from tessarr.facade.zarr3.core.common import *  # noqa: F403

__all__ = _home.__all__
