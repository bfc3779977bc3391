"""zarr-python's ``zarr.errors``."""

from tessarr.errors import *  # noqa: F403
