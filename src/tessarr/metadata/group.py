"""The metadata of a group, in one model for all formats, and the parsers of a group's documents."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tessarr.common.warn import Diagnostic
from tessarr.errors import MetadataValidationError, NodeTypeValidationError
from tessarr.metadata.field import Document, Parsed, check_attributes
from tessarr.metadata.serialize import dumps, group_documents
from tessarr.settings import is_strict
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
        if data.get("node_type") == "array":
            raise MetadataValidationError("the document describes an array", expected="a group")
        if data.get("zarr_format", 3) == 2:
            parsed = _parse_v2({".zgroup": {"zarr_format": 2}, ".zattrs": dict(data.get("attributes") or {})})
        else:
            parsed = _parse_v3({"zarr.json": {"node_type": "group", "zarr_format": 3, **data}})
        return parsed[0]

    def to_buffer_dict(self, prototype: Any) -> dict[str, Any]:
        """Return the documents as they are stored: key relative to the group → a buffer of ``prototype.buffer``."""
        stored = dumps(self.documents())
        return {key: prototype.buffer.from_bytes(value) for key, value in stored.items()}

    @property
    def node_type(self) -> Literal["group"]:
        """``"group"``."""
        return "group"

    def documents(self) -> dict[str, JSONObject]:
        """Return the documents of this group: key relative to the node → JSON."""
        return group_documents(self)

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


def parse_group(zarr_format: ZarrFormat, documents: Mapping[str, Any]) -> Parsed:
    """Parse the documents (relative key → JSON) of a group. Raises `MetadataValidationError` listing every problem."""
    return Parsed(*(_parse_v3(documents) if zarr_format == 3 else _parse_v2(documents)))


def _parse_v3(documents: Mapping[str, JSON]) -> tuple[GroupMetadata, tuple[Diagnostic, ...]]:
    """Parse ``zarr.json``; an inline consolidated block is kept unparsed (`tessarr.metadata.consolidated` parses
    it).
    """
    doc = Document(documents["zarr.json"], "v3 group metadata", "zarr.json")
    if doc.fields.get("node_type") == "array":
        hint = "Open it with open_array"
        raise NodeTypeValidationError("the node is an array, not a group", key="zarr.json", hint=hint)
    doc.require(["zarr_format", "node_type"])
    doc.format(3)
    if doc.fields.get("node_type", "group") != "group":
        doc.add("node_type", "value", f"must be 'group', got {doc.fields['node_type']!r}")
    attributes = doc.attributes()
    extra = doc.extra(("zarr_format", "node_type", "attributes", "consolidated_metadata"))
    consolidated = doc.fields.get("consolidated_metadata")
    if consolidated is not None:
        if isinstance(consolidated, Mapping) and consolidated.get("must_understand") in (False, None):
            extra["consolidated_metadata"] = dict(consolidated)
        else:
            doc.add("consolidated_metadata", "value", 'must be an object with "must_understand": false')
    doc.finish()
    return GroupMetadata(zarr_format=3, attributes=attributes, extra=extra), tuple(doc.diagnostics)


def _parse_v2(documents: Mapping[str, JSON]) -> tuple[GroupMetadata, tuple[Diagnostic, ...]]:
    """Parse ``.zgroup`` and, if present, ``.zattrs``."""
    doc = Document(documents[".zgroup"], "v2 group metadata", ".zgroup")
    doc.require(["zarr_format"])
    doc.format(2)
    extra = {name: value for name, value in doc.fields.items() if name not in ("zarr_format", "consolidated_metadata")}
    if extra and is_strict():
        for name in extra:
            doc.add(name, "unknown", "no other member may be in .zgroup")
    elif extra:
        doc.diagnose(f"unknown members {sorted(extra)} in .zgroup are ignored")
    doc.finish()
    attributes = check_attributes(documents.get(".zattrs", {}), ".zattrs")
    return GroupMetadata(zarr_format=2, attributes=attributes, extra=extra), tuple(doc.diagnostics)
