"""zarr-python's ``zarr.convenience``: open, save, load and copy."""

from tessarr.core.copy import copy, copy_all, copy_store
from tessarr.core.creation.shorthands import consolidate_metadata, load, save, save_array, save_group, tree
from tessarr.core.open import open, open_array, open_consolidated
from tessarr.storage import StoreLike

__all__ = [
    "StoreLike",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "load",
    "open",
    "open_array",
    "open_consolidated",
    "save",
    "save_array",
    "save_group",
    "tree",
]
