"""zarr-python 2's ``zarr.convenience``."""

from tessarr.facade.zarr3.convenience import *  # noqa: F403
