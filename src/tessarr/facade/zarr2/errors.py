"""zarr-python 2's ``zarr.errors``."""

from tessarr.errors import *  # noqa: F403
