"""zarr-python's ``zarr.core.dtype.npy``."""

from __future__ import annotations

from tessarr.facade.lazy import submodules

__getattr__, __dir__ = submodules(__name__, "bool bytes common complex float int string structured time")
