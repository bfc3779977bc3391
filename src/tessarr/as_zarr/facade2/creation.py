"""zarr-python 2's ``zarr.creation``."""

from tessarr.creation import *  # noqa: F403
