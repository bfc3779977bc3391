"""zarr-python's ``zarr.abc``."""

from __future__ import annotations

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(__name__, "buffer codec metadata numcodec store")
