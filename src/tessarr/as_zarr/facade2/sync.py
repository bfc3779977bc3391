"""zarr-python 2's ``zarr.sync``."""

from tessarr.sync import *  # noqa: F403
