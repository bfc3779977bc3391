"""zarr-python 2's ``zarr.attrs``."""

from tessarr.core.attributes import Attributes

__all__ = ["Attributes"]
