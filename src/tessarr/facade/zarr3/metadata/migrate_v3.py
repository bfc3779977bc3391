"""zarr-python's ``zarr.metadata.migrate_v3``: convert metadata of v2 to v3."""

from __future__ import annotations

from tessarr.metadata.public import ArrayV2Metadata, ArrayV3Metadata, model_of, to_public
from tessarr.model.conversion.upgrade import array_to_v3


def _convert_array_metadata(metadata_v2: ArrayV2Metadata) -> ArrayV3Metadata:
    """Convert `metadata_v2` to v3, for the same chunks; attributes stay unchanged.

    Raises `MetadataValidationError` for metadata that v3 cannot represent.
    """
    converted = to_public(array_to_v3(model_of(metadata_v2), keep_array_dimensions=True).metadata)
    assert isinstance(converted, ArrayV3Metadata)
    return converted
