"""zarr-python's ``zarr.core.buffer``."""

from tessarr.buffer import default_buffer_prototype

__all__ = ["default_buffer_prototype"]
