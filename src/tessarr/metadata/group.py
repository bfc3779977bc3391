"""The metadata of a group, in one model for all formats."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tessarr.errors import MetadataValidationError
from tessarr.types import JSON, JSONObject, ZarrFormat


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GroupMetadata:
    """The metadata of one group. Immutable."""

    zarr_format: ZarrFormat = 3
    attributes: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, JSON] = field(default_factory=dict)
    """Unknown document members, which a rewrite must keep."""
    consolidated_metadata: Any = None
    """The metadata of all nodes below, if this group was opened with it (`tessarr.metadata.consolidated`)."""

    def __post_init__(self) -> None:
        if self.attributes is None:  # as zarr-python's `GroupMetadata` takes it
            object.__setattr__(self, "attributes", {})
        elif not isinstance(self.attributes, dict):  # those of an open node, which write through
            object.__setattr__(self, "attributes", self.attributes.asdict())

    def __repr__(self) -> str:
        return (
            f"GroupMetadata(attributes={self.attributes!r}, zarr_format={self.zarr_format}, "
            f"consolidated_metadata={self.consolidated_metadata!r}, node_type={self.node_type!r})"
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GroupMetadata:
        """Parse one document, attributes included. Raises `MetadataValidationError` when it describes no group."""
        from tessarr.metadata import formats

        number: Any = data.get("zarr_format", 3)
        keys = formats.KEYS[number]
        if number == 3:
            documents: dict[str, Any] = {keys.group or "": {"node_type": "group", **data, "zarr_format": 3}}
        else:
            documents = {
                keys.group or "": {"zarr_format": number},
                keys.attributes or "": dict(data.get("attributes") or {}),
            }
        group = formats.parse_node(number, documents).node
        if not isinstance(group, cls):
            raise MetadataValidationError("the document describes an array", expected="a group")
        return group

    def to_buffer_dict(self, prototype: Any) -> dict[str, Any]:
        """Return the documents as they are stored: key relative to the group → a buffer of ``prototype.buffer``."""
        from tessarr.metadata import formats

        stored = formats.dumps(self.documents())
        return {key: prototype.buffer.from_bytes(value) for key, value in stored.items()}

    @property
    def node_type(self) -> Literal["group"]:
        """``"group"``."""
        return "group"

    def documents(self) -> dict[str, JSONObject]:
        """Return the documents of this group: key relative to the node → JSON."""
        from tessarr.metadata.formats import module

        documents: dict[str, JSONObject] = module(self.zarr_format).dump_group(self)
        return documents

    def to_dict(self) -> JSONObject:
        """Return the metadata as one document, attributes included (stored v2 metadata has a separate document for
        them).
        """
        first, *rest = self.documents().values()
        attributes = first.get("attributes", {}) if self.zarr_format == 3 else rest[0] if rest else {}
        return first | {
            "attributes": deepcopy(attributes)
        }  # of an immutable object: who changes the document has a copy

    def with_(self, **changes: Any) -> GroupMetadata:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)

    def with_attributes(self, attributes: dict[str, object]) -> GroupMetadata:
        """Return a copy with other user attributes."""
        return replace(self, attributes=attributes)
