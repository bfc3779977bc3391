"""zarr-python's ``zarr.core.array``. Its functions are coroutines, as those of ``zarr.api.asynchronous``."""

from tessarr.core.array import Array
from tessarr.core.asynchronous.async_array import AsyncArray
from tessarr.facade.zarr3.api import asynchronous as _api

create_array = _api.create_array
from_array = _api.from_array

__all__ = ["Array", "AsyncArray", "create_array", "from_array"]
