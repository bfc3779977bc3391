"""zarr-python's ``zarr.abc.numcodec``."""

from tessarr.abc.numcodec import *  # noqa: F403
