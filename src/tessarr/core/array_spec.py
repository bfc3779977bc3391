"""zarr-python's ``zarr.core.array_spec``; see `tessarr.facade.zarr3.core.array_spec`."""

from tessarr.facade.zarr3.core import array_spec as _home
from tessarr.facade.zarr3.core.array_spec import *  # noqa: F403

__all__ = _home.__all__
