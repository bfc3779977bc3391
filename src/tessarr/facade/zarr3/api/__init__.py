"""zarr-python's ``zarr.api``."""

from __future__ import annotations

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(__name__, "asynchronous synchronous")
