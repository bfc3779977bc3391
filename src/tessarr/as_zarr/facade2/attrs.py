"""zarr-python 2's ``zarr.attrs``."""

from tessarr.attrs import *  # noqa: F403
