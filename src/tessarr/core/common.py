"""zarr-python's ``zarr.core.common``."""

from tessarr.types import JSON, ZarrFormat
from tessarr.types import AccessMode as AccessModeLiteral

__all__ = ["JSON", "AccessModeLiteral", "ZarrFormat"]
