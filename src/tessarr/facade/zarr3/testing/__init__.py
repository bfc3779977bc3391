"""zarr-python's ``zarr.testing``, which pytest loads as a plugin where zarr-python is installed; tessarr has no plugin."""

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(__name__, "")
