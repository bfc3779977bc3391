"""zarr-python's ``zarr.core.attributes``."""

from tessarr.core.attributes import Attributes

__all__ = ["Attributes"]
