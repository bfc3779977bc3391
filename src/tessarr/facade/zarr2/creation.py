"""zarr-python 2's ``zarr.creation``."""

from tessarr.facade.zarr3.creation import *  # noqa: F403
