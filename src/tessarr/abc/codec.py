"""zarr-python's ``zarr.abc.codec``; see `tessarr.facade.zarr3.abc.codec`."""

from tessarr.facade.zarr3.abc import codec as _home
from tessarr.facade.zarr3.abc.codec import *  # noqa: F403

__all__ = _home.__all__
