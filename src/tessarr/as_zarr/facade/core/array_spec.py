"""zarr-python's ``zarr.core.array_spec``."""

from tessarr.core.array_spec import *  # noqa: F403
