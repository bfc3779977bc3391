"""zarr-python's ``zarr.abc.buffer``."""

from tessarr.abc.buffer import *  # noqa: F403
