"""zarr-python's ``zarr.api``: the synchronous functions, and the same as coroutines."""

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(__name__, "asynchronous synchronous")
