"""zarr-python's ``zarr.creation``."""

from tessarr.creation import *  # noqa: F403
