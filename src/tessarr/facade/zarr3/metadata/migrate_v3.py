"""zarr-python's ``zarr.metadata.migrate_v3``: metadata of v2 in the words of v3."""

from __future__ import annotations

from tessarr.metadata.public import ArrayV2Metadata, ArrayV3Metadata, model_of, shown
from tessarr.model.conversion.upgrade import array_to_v3


def _convert_array_metadata(metadata_v2: ArrayV2Metadata) -> ArrayV3Metadata:
    """Say in v3's words what `metadata_v2` says, for the same chunks; attributes stay as they are.

    Raises `MetadataValidationError` where v3 has no words for it.
    """
    converted = shown(array_to_v3(model_of(metadata_v2), keep_array_dimensions=True).metadata)
    assert isinstance(converted, ArrayV3Metadata)
    return converted
