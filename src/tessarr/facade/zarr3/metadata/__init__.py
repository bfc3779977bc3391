"""zarr-python's ``zarr.metadata``."""

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(__name__, "migrate_v3")
