"""zarr-python's ``zarr.core.array``."""

from tessarr.core.array import Array
from tessarr.core.asynchronous.async_array import AsyncArray
from tessarr.core.creation.arrays import create_array
from tessarr.core.creation.shorthands import from_array

__all__ = ["Array", "AsyncArray", "create_array", "from_array"]
