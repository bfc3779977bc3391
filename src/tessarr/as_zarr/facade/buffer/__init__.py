"""zarr-python's ``zarr.buffer``."""

from tessarr.as_zarr.facade._lazy import submodules
from tessarr.buffer import default_buffer_prototype

__all__ = ["default_buffer_prototype"]
__getattr__ = submodules(__name__, "cpu")
