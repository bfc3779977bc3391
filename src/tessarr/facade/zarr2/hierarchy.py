"""zarr-python 2's ``zarr.hierarchy``."""

from tessarr.core.group import Group
from tessarr.core.open import group, open_group

__all__ = ["Group", "group", "open_group"]
