"""zarr-python's ``zarr.metadata``."""

from tessarr.as_zarr.facade._lazy import submodules

__getattr__ = submodules(__name__, "migrate_v3")
