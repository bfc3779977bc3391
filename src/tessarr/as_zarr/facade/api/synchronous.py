"""zarr-python's ``zarr.api.synchronous``."""

from tessarr.api.synchronous import *  # noqa: F403
