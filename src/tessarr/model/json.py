"""Convert a model to JSON and back.

Source: ZEP 6, "Modeling Zarr hierarchy structures in JSON". Where the draft is silent: ``members`` is always written
for groups and may be absent when read; a group document's own member called ``members`` is written as ``_members``,
with one underscore more than any such name present, and renamed back on reading (`rename_members`).

>>> spec = from_json({"zarr_format": 2, "attributes": {}, "members": {}})
>>> to_json(spec)
{'zarr_format': 2, 'attributes': {}, 'members': {}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tessarr.common import strict_json
from tessarr.errors import MetadataValidationError, Problem, TessarrError, problems_of
from tessarr.model.fields import restore_names
from tessarr.model.node import ArraySpec, ArraySpecV2, ArraySpecV3, GroupSpec, Spec
from tessarr.types import JSON, JSONObject

_Loc: TypeAlias = tuple[str | int, ...]
_V3 = (
    "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs",
    "attributes", "dimension_names", "storage_transformers",
)  # fmt: skip
_V3_REQUIRED = _V3[:6]
_V2 = ("shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters", "dimension_separator", "attributes")
_V2_REQUIRED = _V2[:7]


def from_json(document: str | bytes | Mapping[str, JSON]) -> Spec:
    """Parse the model in a JSON text, or in the object parsed from it.

    Only the structure of the model is checked: names, kinds, required members. `tessarr.model.validate` checks their
    values against the specification.

    Raises `MetadataValidationError` listing every problem with its place in the document.
    """
    if isinstance(document, str):
        document = document.encode()
    obj = strict_json.loads(document, key="model") if isinstance(document, bytes) else document
    problems: list[Problem] = []
    spec = _node(obj, (), problems)
    if problems or spec is None:
        raise MetadataValidationError("invalid model", problems)
    return spec


def _node(obj: Any, loc: _Loc, problems: list[Problem]) -> Spec | None:
    if not isinstance(obj, Mapping):
        problems.append(Problem(loc, "type", f"a node must be an object, got {obj!r}"))
        return None
    before = len(problems)
    zarr_format = obj.get("zarr_format")
    if type(zarr_format) is not int or zarr_format not in (2, 3):
        problems.append(Problem((*loc, "zarr_format"), "value", f"must be 2 or 3, got {zarr_format!r}"))
        return None
    attributes = obj.get("attributes", {})
    if not isinstance(attributes, Mapping):
        problems.append(Problem((*loc, "attributes"), "type", f"must be an object, got {attributes!r}"))
        attributes = {}
    is_array = _is_array(obj, zarr_format, loc, problems)
    if len(problems) > before:
        return None
    try:
        if is_array:
            return _array(obj, zarr_format, dict(attributes), loc, problems)
        return _group(obj, zarr_format, dict(attributes), loc, problems)
    except TessarrError as error:
        problems += problems_of(error, *loc)
        return None


def _is_array(obj: Mapping[str, JSON], zarr_format: int, loc: _Loc, problems: list[Problem]) -> bool:
    kind = obj.get("node_type")
    if zarr_format == 3:
        if kind not in ("array", "group"):
            problems.append(Problem((*loc, "node_type"), "value", f"must be 'array' or 'group', got {kind!r}"))
        return bool(kind == "array")
    return "shape" in obj or "dtype" in obj


def _array(
    obj: Mapping[str, object], zarr_format: int, attributes: JSONObject, loc: _Loc, problems: list[Problem]
) -> ArraySpec[JSONObject] | None:
    known, required = (_V3, _V3_REQUIRED) if zarr_format == 3 else (_V2, _V2_REQUIRED)
    before = len(problems)
    problems += [Problem((*loc, name), "missing", "required and not there") for name in required if name not in obj]
    if "members" in obj:
        problems.append(Problem((*loc, "members"), "unknown", "an array cannot have members"))
    for name in ("shape", "codecs", "chunks"):
        if name in obj and name in known and not isinstance(obj[name], list | tuple):
            problems.append(Problem((*loc, name), "type", f"must be a list, got {obj[name]!r}"))
    if zarr_format == 2 and not isinstance(obj.get("filters"), list | tuple | None):
        problems.append(Problem((*loc, "filters"), "type", f"must be null or a list, got {obj['filters']!r}"))
    for name in ("dimension_names", "storage_transformers"):
        if not isinstance(obj.get(name), list | tuple | None):
            problems.append(Problem((*loc, name), "type", f"must be a list, got {obj[name]!r}"))
    if len(problems) > before:
        return None
    values = {name: obj[name] for name in known if name in obj and name != "attributes"}
    extra = {name: obj[name] for name in obj if name not in (*known, "zarr_format", "node_type")}
    make: Any = ArraySpecV3 if zarr_format == 3 else ArraySpecV2
    return make(**values, attributes=attributes, extra=extra)  # type: ignore[no-any-return]


def _group(
    obj: Mapping[str, JSON], zarr_format: Any, attributes: JSONObject, loc: _Loc, problems: list[Problem]
) -> GroupSpec[JSONObject, object] | None:
    members = obj.get("members", {})
    if not isinstance(members, Mapping):
        problems.append(Problem((*loc, "members"), "type", f"must be an object, got {members!r}"))
        return None
    nodes = {}
    for name, member in members.items():
        node = _node(member, (*loc, "members", name), problems)
        if node is not None:
            nodes[name] = node
    own = ("zarr_format", "attributes", "members", *(("node_type",) if zarr_format == 3 else ()))
    extra = restore_names({name: value for name, value in obj.items() if name not in own})
    return GroupSpec(zarr_format=zarr_format, attributes=attributes, members=nodes, extra=extra)


def to_json(spec: Spec) -> JSONObject:
    """Convert the node, and everything below it, to a JSON object."""
    return spec.to_json()
