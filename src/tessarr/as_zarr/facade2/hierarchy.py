"""zarr-python 2's ``zarr.hierarchy``."""

from tessarr.hierarchy import *  # noqa: F403
