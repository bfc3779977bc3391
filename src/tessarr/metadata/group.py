"""The metadata of a group, in one model for all formats."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tessarr.types import JSON, JSONObject, ZarrFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """The metadata of one group. Immutable."""

    zarr_format: ZarrFormat = 3
    attributes: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, JSON] = field(default_factory=dict)
    """Unknown document members, which a rewrite must keep."""
    consolidated_metadata: Any = None
    """The metadata of all nodes below, if this group was opened with it (`tessarr.metadata.consolidated`)."""

    def documents(self) -> dict[str, JSONObject]:
        """Return the documents of this group: key relative to the node → JSON."""
        from tessarr.metadata import formats

        documents: dict[str, JSONObject] = formats.module(self.zarr_format).dump_group(self)
        return documents

    def to_dict(self) -> JSONObject:
        """Return the metadata as one document, attributes included (stored v2 metadata has a separate document for
        them).
        """
        first, *rest = self.documents().values()
        return first if self.zarr_format == 3 else {**first, "attributes": rest[0] if rest else {}}

    def with_(self, **changes: Any) -> GroupMetadata:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)

    def with_attributes(self, attributes: dict[str, object]) -> GroupMetadata:
        """Return a copy with other user attributes."""
        return replace(self, attributes=attributes)
