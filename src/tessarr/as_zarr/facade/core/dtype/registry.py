"""zarr-python's ``zarr.core.dtype.registry``."""

from tessarr.dtype import DataTypeRegistry

__all__ = ["DataTypeRegistry"]
