"""zarr-python's ``zarr.abc.codec``."""

from tessarr.abc.codec import *  # noqa: F403
