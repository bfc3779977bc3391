"""zarr-python's ``zarr.experimental.cache_store``."""

from tessarr.experimental.cache_store import *  # noqa: F403
