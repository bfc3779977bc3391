"""zarr-python's ``zarr.core.group``."""

from tessarr.core.asynchronous.async_group import AsyncGroup
from tessarr.core.creation.shorthands import create_hierarchy
from tessarr.core.group import Group
from tessarr.metadata.consolidated import Consolidated as ConsolidatedMetadata
from tessarr.metadata.group import GroupMetadata

__all__ = ["AsyncGroup", "ConsolidatedMetadata", "Group", "GroupMetadata", "create_hierarchy"]
