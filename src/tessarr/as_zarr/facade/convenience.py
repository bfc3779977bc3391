"""zarr-python's ``zarr.convenience``."""

from tessarr.convenience import *  # noqa: F403
from tessarr.core.open import open_array as open_array
from tessarr.storage import StoreLike as StoreLike
