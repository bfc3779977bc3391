"""zarr-python's ``zarr.core.common``."""

from tessarr.types import AccessMode as AccessModeLiteral
from tessarr.types import ZarrFormat

__all__ = ["AccessModeLiteral", "ZarrFormat"]
