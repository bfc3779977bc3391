"""zarr-python's ``zarr.api``."""

from __future__ import annotations

from tessarr.as_zarr.facade._lazy import submodules

__getattr__ = submodules(__name__, "asynchronous synchronous")
