"""Make nodes of a model from their stored documents, and back. Pure: `tessarr.core.stored.model_io` does the I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessarr.errors import MetadataValidationError, TessarrError
from tessarr.metadata import consolidated, serialize
from tessarr.model import json as model_json
from tessarr.model.canonical import extension
from tessarr.model.node import ArraySpecV3, GroupSpec, Spec, walk
from tessarr.types import JSON, JSONObject


def own_spec(documents: Mapping[str, JSON], zarr_format: int, path: str) -> Spec:
    """Make a node without members from its documents. Raises `MetadataValidationError` naming `path`."""
    name = "zarr.json" if zarr_format == 3 else ".zarray" if ".zarray" in documents else ".zgroup"
    document = documents[name]
    if not isinstance(document, dict):
        raise MetadataValidationError("the document is not a JSON object", path=f"/{path}", key=name)
    attributes = document.get("attributes", {}) if zarr_format == 3 else documents.get(".zattrs", {})
    own = {key: value for key, value in document.items() if key not in ("attributes", consolidated.FIELD)}
    try:
        if consolidated.kind_of(documents) == "group":
            # not through the JSON of a model, where the document's "members" would need another name
            extra = {key: own.pop(key) for key in list(own) if key not in ("zarr_format", "node_type")}
            return model_json.from_json({**own, "attributes": attributes}).with_(extra=extra)
        return model_json.from_json({**own, "attributes": attributes})
    except TessarrError as error:
        raise error.at(path=f"/{path}") from None


def from_block(block: consolidated.Consolidated, documents: dict[str, JSON], path: str, zarr_format: int) -> Spec:
    """Build the group at `path` from its own documents, and the nodes below it from consolidated metadata."""

    def build(below: str, own: dict[str, JSON]) -> Spec:
        node = own_spec(own, zarr_format, "/".join(filter(None, (path, below))))
        if not isinstance(node, GroupSpec):
            return node
        members = {}
        for name in block.children(below):
            place = f"{below}/{name}" if below else name
            entry = block.node(place)
            assert entry is not None
            members[name] = build(place, entry)
        return node.with_(members=members)

    return build("", documents)


def serialise(spec: Spec, path: str = "", *, consolidate: bool = False) -> dict[str, bytes]:
    """Map the full key of every document of the hierarchy to its value, in writing order: deepest first, root last."""
    values: dict[str, bytes] = {}
    nodes = [(place, _written(node)) for place, node in walk(spec)]
    for place, documents in reversed(nodes):
        if consolidate and not place and isinstance(spec, GroupSpec):
            documents = _with_block(spec.zarr_format, documents, dict(nodes))
        prefix = "".join(f"{part}/" for part in (path, place) if part)
        data = serialize.dumps(documents)
        values.update({prefix + name: data[name] for name in reversed(documents)})
    return values


def _with_block(
    zarr_format: int, documents: dict[str, JSONObject], nodes: dict[str, dict[str, JSONObject]]
) -> dict[str, JSONObject]:
    if zarr_format == 2:
        return {**documents, consolidated.V2_KEY: consolidated.dump_v2(nodes)}
    return {"zarr.json": {**documents["zarr.json"], consolidated.FIELD: consolidated.dump_v3(nodes)}}


def _written(node: Spec) -> dict[str, JSONObject]:
    """Return a node's documents with extensions as objects: readers of v3.0 do not support short-hand names."""
    documents: dict[str, JSONObject] = node.documents()
    if isinstance(node, ArraySpecV3):
        document = documents["zarr.json"]
        for name in ("codecs", "storage_transformers"):
            if name in document:
                document[name] = [_as_object(item) for item in document[name]]  # type: ignore[union-attr]
        for name in ("chunk_grid", "chunk_key_encoding"):
            document[name] = _as_object(document[name])
    return documents


def _as_object(value: object) -> Any:
    return extension(value) if isinstance(value, str) else value
