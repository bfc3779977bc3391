"""Between a model and a store, through the few methods a store must have (no store is imported here).

`from_store` reads documents and lists directories, never a chunk; `to_store` writes exactly the documents.

Source: ZEP 6, "Motivation and Scope": create a hierarchy from a definition; evaluate whether one has a structure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

from tessarr.common.warn import warn
from tessarr.errors import (
    ContainsArrayError,
    ContainsGroupError,
    MetadataValidationError,
    NodeNotFoundError,
    TessarrError,
    UnsupportedOperationError,
    ZarrUserWarning,
)
from tessarr.metadata import consolidated, formats
from tessarr.model import json as model_json
from tessarr.model.canonical import extension
from tessarr.model.node import ArraySpecV3, GroupSpec, Spec, walk
from tessarr.model.valid import require_valid
from tessarr.stores.path import prefix_of
from tessarr.types import Buffer, JSONObject


class ReadableStore(Protocol):
    """What `from_store` needs; every `tessarr.stores.Store` has it."""

    def get(self, key: str) -> Buffer | None:
        """The value, or ``None``."""

    def fetch(self, requests: Any) -> Any:
        """Several values at once."""

    def list_dir(self, prefix: str) -> Any:
        """Direct children, with ``keys`` and ``prefixes``."""


class WritableStore(ReadableStore, Protocol):
    """What `to_store` needs."""

    def set(self, key: str, value: Buffer) -> Any:
        """Replace a value."""

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> Any:
        """Change a value, whatever another writer made of it in the meantime."""

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        """Replace all that is under a prefix; nothing old goes before everything new is stored."""


class _Fetch(NamedTuple):
    """A request as `Store.fetch` takes it."""

    key: str
    ranges: None = None


_NAMES = ("zarr.json", ".zarray", ".zgroup", ".zattrs")


def place_of(store: Any, path: str, *, mode: Literal["r", "a"] = "r") -> tuple[Any, str]:
    """A store and the path in it, from a store, an array or a group, or what stands for a store (a path or URL, say)."""
    path = path.strip("/")
    if hasattr(store, "list_dir"):
        return store, path
    if hasattr(store, "store") and isinstance(getattr(store, "path", None), str):
        return store.store, "/".join(filter(None, (store.path.strip("/"), path)))
    from tessarr.stores.url import store_from  # not above: models of stores that are there need no URLs

    opened, here = store_from(store, mode=mode)
    return opened, "/".join(filter(None, (here, path)))


def from_store(
    store: Any,
    path: str = "",
    *,
    zarr_format: int | None = None,
    use_consolidated: bool | None = None,
) -> Any:
    """The model of the node at `path` and all below it: an `ArraySpec` or `GroupSpec` with JSON attributes.

    `store` is a store, a path or URL, or an opened array or group, below which `path` is looked for. With
    `use_consolidated` ``None`` consolidated metadata is used where there is any, ``True`` requires it, ``False`` reads
    the nodes themselves. Where both formats have documents v3 is read, unless `zarr_format` says otherwise.

    Raises `NodeNotFoundError`; `MetadataValidationError` (with the node's path) for documents that are no model.
    """
    place, path = place_of(store, path)
    try:
        return _model(place, path, zarr_format, use_consolidated)
    finally:
        _close(place, store)


def _close(place: Any, given: Any) -> None:
    """Close a store that was opened here for what was given; a zip archive is published by that."""
    if place is not given and getattr(given, "store", None) is not place:
        place.close()


def _model(store: Any, path: str, zarr_format: int | None, use_consolidated: bool | None) -> Any:
    documents = _read(store, [path])[path]
    found = _format_of(documents, zarr_format)
    if found is None:
        if not path and store.get("meta") is not None:
            hint = "Migrate it to v2 or v3 first"
            raise UnsupportedOperationError("the object model has no Zarr v1", path="/", hint=hint)
        raise NodeNotFoundError("no node here", path=f"/{path}", hint="Check the path and the format")
    if use_consolidated is not False and _is_group(documents, found):
        block = _consolidated(store, path, documents, found)
        if block is not None:
            return _from_block(block, documents, path, found)
        if use_consolidated:
            raise MetadataValidationError("no consolidated metadata here", path=f"/{path}")
    return _read_tree(store, path, documents, found, strict=zarr_format is None)


def _read(store: ReadableStore, paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The parsed documents of several nodes, all asked for at once."""
    keys = [(path, name) for path in paths for name in _NAMES]
    answers = store.fetch([_Fetch(f"{path}/{name}" if path else name) for path, name in keys])
    result: dict[str, dict[str, Any]] = {path: {} for path in paths}
    for (path, name), answer in zip(keys, answers, strict=True):
        if answer is not None:
            key = f"{path}/{name}" if path else name
            result[path][name] = formats.loads(name, answer[0], key=key)
    return result


def _format_of(documents: dict[str, Any], wanted: int | None) -> int | None:
    if "zarr.json" in documents and wanted in (None, 3):
        return 3
    return 2 if documents.keys() & {".zarray", ".zgroup"} and wanted in (None, 2) else None


def _is_group(documents: dict[str, Any], zarr_format: int) -> bool:
    if zarr_format == 2:
        return ".zarray" not in documents
    document = documents["zarr.json"]
    return isinstance(document, dict) and document.get("node_type") == "group"


def _consolidated(
    store: ReadableStore, path: str, documents: dict[str, Any], zarr_format: int
) -> consolidated.Consolidated | None:
    if zarr_format == 3:
        return consolidated.parse_v3(documents["zarr.json"].get(consolidated.FIELD))
    key = f"{path}/{consolidated.V2_KEY}" if path else consolidated.V2_KEY
    data = store.get(key)
    return None if data is None else consolidated.parse_v2(formats.loads(consolidated.V2_KEY, data, key=key))


def _from_block(block: consolidated.Consolidated, documents: dict[str, Any], path: str, zarr_format: int) -> Any:
    def build(below: str, own: dict[str, Any]) -> Any:
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


def _read_tree(store: ReadableStore, path: str, documents: dict[str, Any], zarr_format: int, *, strict: bool) -> Any:
    """Level by level, so that a level costs one round of listings and one round of reads."""
    found: dict[str, Any] = {path: own_spec(documents, zarr_format, path)}
    level = [path]
    children: dict[str, list[str]] = {}
    while level:
        below: list[str] = []
        for parent in level:
            if isinstance(found[parent], GroupSpec):
                listing = store.list_dir(prefix_of(parent))
                children[parent] = [prefix.rstrip("/") for prefix in listing.prefixes]
                below += children[parent]
        read = _read(store, below) if below else {}
        level = []
        for child, own in read.items():
            number = _format_of(own, zarr_format)
            if number is not None:
                found[child] = own_spec(own, number, child)
                level.append(child)
            elif (other := _format_of(own, None)) is not None:
                _mixed(child, other, zarr_format, strict)

    def build(place: str) -> Any:
        node = found[place]
        if not isinstance(node, GroupSpec):
            return node
        members = {child.rpartition("/")[2]: build(child) for child in children.get(place, ()) if child in found}
        return node.with_(members=members)

    return build(path)


def _mixed(path: str, other: int, zarr_format: int, strict: bool) -> None:
    """One hierarchy is of one format (ZOM-24)."""
    if strict:
        hint = f"Give zarr_format={zarr_format} to leave it out, or migrate it"
        raise MetadataValidationError(f"a v{other} node stands in a v{zarr_format} group", path=f"/{path}", hint=hint)
    message = f"/{path} has metadata of Zarr v{other}, not v{zarr_format}; it is left out"
    warn(message, ZarrUserWarning)


def own_spec(documents: dict[str, Any], zarr_format: int, path: str) -> Any:
    """One node from its documents, without members. Raises `MetadataValidationError` naming `path`."""
    name = "zarr.json" if zarr_format == 3 else ".zarray" if ".zarray" in documents else ".zgroup"
    document = documents[name]
    if not isinstance(document, dict):
        raise MetadataValidationError("the document is not a JSON object", path=f"/{path}", key=name)
    attributes = document.get("attributes", {}) if zarr_format == 3 else documents.get(".zattrs", {})
    own = {key: value for key, value in document.items() if key not in ("attributes", consolidated.FIELD)}
    try:
        if _is_group(documents, zarr_format):
            # not through the JSON of a model, where a document's own "members" would need another name
            extra = {key: own.pop(key) for key in list(own) if key not in ("zarr_format", "node_type")}
            return model_json.from_json({**own, "attributes": attributes}).with_(extra=extra)
        return model_json.from_json({**own, "attributes": attributes})
    except TessarrError as error:
        raise error.at(path=f"/{path}") from None


def to_store(
    spec: Spec,
    store: Any,
    path: str = "",
    *,
    overwrite: bool = False,
    consolidate: bool = False,
    check: bool = True,
) -> None:
    """Create the hierarchy that the model describes: its metadata documents, and nothing else.

    Everything is checked and serialised before the first write (`check`: each node must be one that can be opened).
    The root's document is written last, so that the hierarchy appears when it is complete. `consolidate` adds
    consolidated metadata. With `overwrite`, a node that is there, and everything below it, is replaced once the new
    documents are stored; without, `ContainsArrayError` or `ContainsGroupError` is raised. Groups above `path` that are
    missing are created.
    """
    if check:
        require_valid(spec)
    place, path = place_of(store, path, mode="a")
    try:
        _create(spec, place, path, overwrite, consolidate)
    finally:
        _close(place, store)


def _create(spec: Spec, store: Any, path: str, overwrite: bool, consolidate: bool) -> None:
    values = serialise(spec, path, consolidate=consolidate)
    existing = _read(store, [path])[path]
    kind = _format_of(existing, None)
    writable: WritableStore = store
    if kind is not None:
        if not overwrite:
            error = ContainsGroupError if _is_group(existing, kind) else ContainsArrayError
            raise error("a node is in the way", path=f"/{path}", hint="Choose another path, or overwrite=True")
        writable.replace_prefix(prefix_of(path), values)
        _follow(writable, path, values)
        return
    values = {**_groups_above(store, path, spec.zarr_format), **values}
    for key, value in values.items():
        writable.set(key, value)
    _follow(writable, path, values)


def _follow(store: WritableStore, path: str, values: Mapping[str, bytes]) -> None:
    """Enter what was written at and below `path` into the consolidated metadata of the groups above."""
    written: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        place, _, name = key.rpartition("/")
        if name != consolidated.V2_KEY:
            written.setdefault(place, {})[name] = formats.loads(name, value, key=key)
    names = path.split("/") if path else []
    for depth in range(len(names)):
        prefix = "".join(f"{name}/" for name in names[:depth])
        own = {place[len(prefix) :]: found for place, found in written.items() if f"{place}/".startswith(prefix)}
        for name in ("zarr.json", consolidated.V2_KEY):
            old = store.get(prefix + name)
            if old is None or (name == "zarr.json" and consolidated.FIELD.encode() not in bytes(old)):
                continue
            below = {place: found for place, found in own.items() if place or name == consolidated.V2_KEY}
            store.update(prefix + name, partial(_entered, prefix + name, name, below, path[len(prefix) :]))


def _entered(key: str, name: str, nodes: dict[str, dict[str, Any]], gone: str, old: Buffer | None) -> Buffer | None:
    if old is None:
        return None
    new = consolidated.entered(name, formats.loads(name, old, key=key), nodes, [gone])
    return old if new is None else formats.dumps({name: new})[name]


def _groups_above(store: ReadableStore, path: str, zarr_format: Any) -> dict[str, bytes]:
    """Documents of the groups above `path` that are missing. Raises `ContainsArrayError` when one is an array."""
    names = path.split("/") if path else []
    above = ["/".join(names[:depth]) for depth in range(len(names))]
    missing: dict[str, bytes] = {}
    for place, documents in _read(store, above).items() if above else ():
        found = _format_of(documents, None)
        if found is None:
            group: GroupSpec[Any, Any] = GroupSpec(zarr_format=zarr_format)
            missing |= serialise(group, place)
        elif not _is_group(documents, found):
            raise ContainsArrayError("an array cannot have members", path=f"/{place}", got=f"a node at /{path}")
    return missing


def serialise(spec: Spec, path: str = "", *, consolidate: bool = False) -> dict[str, bytes]:
    """Full key → value of every document of the hierarchy, in the order to write them: deepest first, root last."""
    values: dict[str, bytes] = {}
    nodes = [(place, _written(node)) for place, node in walk(spec)]
    for place, documents in reversed(nodes):
        if consolidate and not place and isinstance(spec, GroupSpec):
            documents = _with_block(spec.zarr_format, documents, dict(nodes))
        prefix = "".join(f"{part}/" for part in (path, place) if part)
        data = formats.dumps(documents)
        values.update({prefix + name: data[name] for name in reversed(documents)})
    return values


def _with_block(
    zarr_format: int, documents: dict[str, JSONObject], nodes: dict[str, dict[str, JSONObject]]
) -> dict[str, JSONObject]:
    if zarr_format == 2:
        return {**documents, consolidated.V2_KEY: consolidated.dump_v2(nodes)}
    return {"zarr.json": {**documents["zarr.json"], consolidated.FIELD: consolidated.dump_v3(nodes)}}


def _written(node: Any) -> dict[str, JSONObject]:
    """A node's documents with extensions as objects: readers of v3.0 know no short-hand names."""
    documents: dict[str, JSONObject] = node.documents()
    if isinstance(node, ArraySpecV3):
        document = documents["zarr.json"]
        for name in ("codecs", "storage_transformers"):
            if name in document:
                document[name] = [_as_object(item) for item in document[name]]  # type: ignore[union-attr]
        for name in ("chunk_grid", "chunk_key_encoding"):
            document[name] = _as_object(document[name])
    return documents


def _as_object(value: Any) -> Any:
    return extension(value) if isinstance(value, str) else value
