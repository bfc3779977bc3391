"""zarr-python's ``zarr.core.metadata``."""

from __future__ import annotations

from typing import TypeAlias

from tessarr.facade.lazy import submodules
from tessarr.metadata.public import ArrayV2Metadata, ArrayV3Metadata
from tessarr.types import JSON

ArrayMetadata: TypeAlias = ArrayV2Metadata | ArrayV3Metadata
ArrayMetadataDict: TypeAlias = dict[str, JSON]
ArrayV2MetadataDict: TypeAlias = dict[str, JSON]
ArrayMetadataJSON_V3: TypeAlias = dict[str, JSON]

__all__ = [
    "ArrayMetadata",
    "ArrayMetadataDict",
    "ArrayMetadataJSON_V3",
    "ArrayV2Metadata",
    "ArrayV2MetadataDict",
    "ArrayV3Metadata",
]
__getattr__, __dir__ = submodules(__name__, "common v2 v3")
