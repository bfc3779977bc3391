"""zarr-python's ``zarr.core.dtype.npy``."""

from __future__ import annotations

from tessarr.as_zarr.facade._lazy import submodules

__getattr__ = submodules(__name__, "bool bytes common complex float int string structured time")
