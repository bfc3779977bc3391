"""zarr-python 2's ``zarr.core``."""

from tessarr.core.array import Array

__all__ = ["Array"]
