"""zarr-python's stores here: see `tessarr.stores.zarr_python`."""

from __future__ import annotations

from tessarr.stores.zarr_python import ZarrPythonStore

__all__ = ["ZarrPythonStore"]
