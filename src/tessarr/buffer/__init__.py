"""zarr-python's ``zarr.buffer``; see `tessarr.facade.zarr3.buffer`."""

from tessarr.facade.lazy import submodules
from tessarr.facade.zarr3.buffer import default_buffer_prototype

__all__ = ["default_buffer_prototype"]
__getattr__, __dir__ = submodules(__name__, "cpu")
