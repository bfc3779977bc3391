"""zarr-python's ``zarr.core.common``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessarr.types import AccessMode as AccessModeLiteral
from tessarr.types import ZarrFormat

if TYPE_CHECKING:
    from tessarr.types import JSON
else:  # annotations join it with other types
    JSON = Any

__all__ = ["JSON", "AccessModeLiteral", "ZarrFormat"]
