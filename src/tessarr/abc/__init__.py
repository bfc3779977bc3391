"""zarr-python's ``zarr.abc``: the contracts that extensions inherit."""

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(__name__, "buffer codec metadata numcodec store")
