"""zarr-python's ``zarr.abc.metadata``."""

from tessarr.abc.metadata import *  # noqa: F403
