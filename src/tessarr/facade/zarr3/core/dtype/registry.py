"""zarr-python's ``zarr.core.dtype.registry``."""

from tessarr.facade.zarr3.dtype import DataTypeRegistry

__all__ = ["DataTypeRegistry"]
