"""zarr-python's ``zarr.core.buffer.cpu``."""

from tessarr.buffer.cpu import *  # noqa: F403
