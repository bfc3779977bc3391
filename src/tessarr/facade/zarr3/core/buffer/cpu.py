"""zarr-python's ``zarr.core.buffer.cpu``."""

from tessarr.facade.zarr3.buffer.cpu import *  # noqa: F403
