"""zarr-python's ``zarr.core._info``."""

from tessarr.core.info import ArrayInfo, GroupInfo

__all__ = ["ArrayInfo", "GroupInfo"]
