"""zarr-python's ``zarr.types``."""

from typing import TypeAlias

from tessarr.core.array import Array
from tessarr.core.asynchronous.async_array import AsyncArray

AnyArray: TypeAlias = Array
AnyAsyncArray: TypeAlias = AsyncArray
ArrayV2: TypeAlias = Array
ArrayV3: TypeAlias = Array

__all__ = ["AnyArray", "AnyAsyncArray", "ArrayV2", "ArrayV3"]
