"""zarr-python 2's ``zarr.hierarchy``; see `tessarr.facade.zarr2.hierarchy`."""

from tessarr.facade.zarr2 import hierarchy as _home
from tessarr.facade.zarr2.hierarchy import *  # noqa: F403

__all__ = _home.__all__
