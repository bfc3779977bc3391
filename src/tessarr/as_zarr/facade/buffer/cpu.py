"""zarr-python's ``zarr.buffer.cpu``."""

from tessarr.buffer.cpu import *  # noqa: F403
