"""zarr-python's ``zarr.storage._utils``."""

from tessarr.stores.path import normalize_path

__all__ = ["normalize_path"]
