"""zarr-python's ``zarr.experimental.cache_store``; see `tessarr.facade.zarr3.experimental.cache_store`."""

from tessarr.facade.zarr3.experimental import cache_store as _home
from tessarr.facade.zarr3.experimental.cache_store import *  # noqa: F403

__all__ = _home.__all__
