"""Consolidated metadata: the documents of a whole hierarchy in one place, so that one request opens the hierarchy.

v3 keeps it in the group's ``zarr.json`` (zarr-specs pull request 373); v2 in the key ``.zmetadata`` beside the group's
own documents (never specified, universal in practice). Both are flat maps like the result of `tessarr.model.flatten`:

>>> inline = parse_v3({"kind": "inline", "must_understand": False, "metadata": {
...     "a": {"zarr_format": 3, "node_type": "group"}, "a/x": {"zarr_format": 3, "node_type": "array"}}})
>>> inline.children(""), inline.children("a"), inline.under("a").paths()
({'a': 'group'}, {'x': 'array'}, ('x',))
>>> old = parse_v2({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}, "x/.zarray": {}}})
>>> old.node(""), old.children("")
({'.zgroup': {'zarr_format': 2}}, {'x': 'array'})

Entries are parsed lazily: a map of 10,000 nodes costs one pass over its keys. Practices of real writers that no text
describes are read: values that are JSON in a string (v2), keys that begin with a slash, ``null`` for "none" (v3), blocks
in nested groups (an empty one refers to the outer map; a filled one adds nodes that the outer map lacks), and a stray
``consolidated_metadata`` in nested ``.zgroup`` entries. A v3 ``kind`` other than ``inline`` is not supported: the result
is ``None``, and the store is read instead.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from tessarr.common import strict_json
from tessarr.common.warn import Diagnostic, report
from tessarr.errors import MetadataValidationError, Problem
from tessarr.types import JSON, JSONObject, ZarrFormat

V2_KEY = ".zmetadata"
FIELD = "consolidated_metadata"
"""The member of a v3 group document."""
_V3_KEY = "zarr.json"
_V2_NAMES = frozenset((".zarray", ".zgroup", ".zattrs"))

Documents: TypeAlias = dict[str, Any]
"""The stored documents of a node: key relative to the node → JSON."""
Kind: TypeAlias = Literal["array", "group"]


class Changes:
    """Name the nodes of a hierarchy that were changed after its consolidated metadata had been read.

    Paths are relative to the group that was consolidated. Their documents are to be read from the store.
    """

    __slots__ = ("__weakref__", "_nodes", "_trees")

    def __init__(self) -> None:
        self._nodes: set[str] = set()
        self._trees: set[str] = set()

    def add(self, path: str, *, below: bool = False) -> None:
        """Note a change of the node at `path`; with `below`, of all below it too. "" is the group itself, and no member."""
        if path:
            self._nodes.add(path)
        if below:
            self._trees.add(path)

    def at(self, path: str) -> bool:
        """Whether the node at `path` was changed."""
        return path in self._nodes or any(_is_within(path, tree) for tree in tuple(self._trees))

    def below(self, path: str) -> bool:
        """Whether any node below the group at `path` was changed, or the group as a whole."""
        return self.at(path) or any(_is_within(changed, path) for changed in tuple(self._nodes))


class Consolidated:
    """Hold the documents of every node below a group (and, in v2, of the group itself). Immutable once parsed.

    `raw` maps paths relative to the group to documents. `prefix` is the root of this view of the map (`under`).
    What was changed since it was read is in `changes`, which all views of a map share.
    """

    __slots__ = ("_children", "_parsed", "_prefix", "_raw", "changes", "zarr_format")

    def __init__(self, zarr_format: ZarrFormat, raw: Mapping[str, Documents]) -> None:
        self.zarr_format: ZarrFormat = zarr_format
        self._raw = raw
        self._prefix = ""
        self._children: dict[str, dict[str, Kind]] = {}
        self._parsed: dict[str, object] = {}
        self.changes = Changes()

    def __repr__(self) -> str:
        return f"Consolidated(zarr_format={self.zarr_format}, nodes={len(self.paths())})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Consolidated):
            return NotImplemented
        return self.zarr_format == other.zarr_format and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def _full(self, path: str) -> str:
        path = path.strip("/")
        if not self._prefix:
            return path
        return f"{self._prefix}/{path}" if path else self._prefix

    def node(self, path: str) -> Documents | None:
        """Return the documents of the node at `path` (relative to this group, "" is the group itself), or ``None``.

        A v3 group is never in its own map. Raises `MetadataValidationError` when a v2 entry is a string without valid
        JSON.
        """
        documents = self._raw.get(self._full(path))
        if documents is None:
            return None
        return {name: _unwrap(value, path, name) for name, value in documents.items()}

    def parsed(self, path: str, parse: Callable[[ZarrFormat, Documents], object] | None = None) -> Any:
        """Return the parsed `ArrayMetadata` or `GroupMetadata` at `path`, or ``None``; parsed once.

        `parse` makes the node from its documents and warns; default: `tessarr.metadata.formats.parse_node`.

        Raises `MetadataValidationError` for an entry that violates its specification.
        """
        full = self._full(path)
        if full not in self._parsed:
            documents = self.node(path)
            if documents is None:
                return None
            from tessarr.metadata import formats

            if parse is None:
                self._parsed[full], diagnostics = formats.parse_node(self.zarr_format, documents)
                report(diagnostics)
            else:
                self._parsed[full] = parse(self.zarr_format, documents)
        return self._parsed[full]

    def kind(self, path: str) -> Kind | None:
        """Return the kind of the node at `path`, without parsing it; ``None`` when there is no node."""
        documents = self._raw.get(self._full(path))
        return None if documents is None else kind_of(documents)

    def children(self, path: str) -> dict[str, Kind]:
        """Return the direct children of the group at `path`: name → kind, in the order of the map."""
        if not self._children:
            self._children.update(_index(self._raw))
        return dict(self._children.get(self._full(path), {}))

    def paths(self) -> tuple[str, ...]:
        """Return every path below this group ("" is not among them), parents before children."""
        start = f"{self._prefix}/" if self._prefix else ""
        found = [path[len(start) :] for path in self._raw if path and path.startswith(start)]
        return tuple(sorted((path for path in found if path), key=_order))

    def items(self) -> Iterator[tuple[str, Documents]]:
        """Yield every path and its documents; in v2 this group's own come first, under ""."""
        own = self.node("")
        if own is not None and self.zarr_format == 2:
            yield "", own
        for path in self.paths():
            documents = self.node(path)
            assert documents is not None
            yield path, documents

    def under(self, path: str) -> Consolidated:
        """Return a view of the same map from the group at `path`; nothing is copied."""
        copied = Consolidated(self.zarr_format, self._raw)
        copied._prefix = self._full(path)
        copied._children = self._children
        copied._parsed = self._parsed
        copied.changes = self.changes
        return copied

    def origin(self, path: str) -> str:
        """Return the path of the group whose documents these are, for the `path` of the group that has this view."""
        return path[: len(path) - len(self._prefix)].rstrip("/")

    def changed(self, path: str) -> bool:
        """Whether the node at `path` (relative to this view) was changed since the documents were read."""
        return self.changes.at(self._full(path))

    def changed_below(self) -> bool:
        """Whether a node below this group was changed since the documents were read."""
        return self.changes.below(self._prefix)

    @property
    def metadata(self) -> dict[str, Any]:
        """Name → parsed metadata of the direct children, as in zarr-python; a new dict."""
        return {name: self.parsed(name) for name in self.children("")}

    @property
    def flattened_metadata(self) -> dict[str, object]:
        """Path → parsed metadata of every node below this group; a new dict."""
        return {path: self.parsed(path) for path in self.paths()}

    def to_json(self) -> JSONObject:
        """Return the v3 inline object, or the v2 ``.zmetadata`` document."""
        nodes = dict(self.items())
        return dump_v3(nodes) if self.zarr_format == 3 else dump_v2(nodes)

    to_dict = to_json
    """zarr-python's name."""


def _is_within(path: str, tree: str) -> bool:
    return not tree or path == tree or path.startswith(f"{tree}/")


def parse_v3(obj: object, diagnostics: list[Diagnostic] | None = None) -> Consolidated | None:
    """Parse the ``consolidated_metadata`` member of a group's ``zarr.json``.

    Returns ``None`` when the member cannot be used: null, of another kind than inline, or malformed, which adds a
    diagnostic.
    Source: Zarr v3 core, "Additional fields" (zarr-specs pull request 373).
    """
    if obj is None:
        return None
    if not isinstance(obj, Mapping) or not isinstance(obj.get("metadata"), Mapping):
        if diagnostics is not None:
            diagnostics.append(Diagnostic("malformed consolidated_metadata is ignored; the store is read"))
        return None
    if obj.get("kind", "inline") != "inline":
        return None
    raw: dict[str, Documents] = {}
    _collect(obj["metadata"], "", raw)
    return Consolidated(3, raw)


def _collect(entries: Mapping[str, object], prefix: str, raw: dict[str, Documents]) -> None:
    """Add the entries of one block, then those of filled blocks in its groups; existing entries stay."""
    nested: list[tuple[str, Mapping[str, JSON]]] = []
    for key, document in entries.items():
        path = prefix + key.strip("/")
        if isinstance(document, Mapping) and FIELD in document:
            block = document[FIELD]
            document = {name: value for name, value in document.items() if name != FIELD}
            if isinstance(block, Mapping) and isinstance(block.get("metadata"), Mapping) and block["metadata"]:
                nested.append((f"{path}/", block["metadata"]))
        if path:
            raw.setdefault(path, {_V3_KEY: document})
    for start, block in nested:
        _collect(block, start, raw)


def parse_v2(document: object) -> Consolidated:
    """Parse a ``.zmetadata`` document.

    Raises `MetadataValidationError` for any other document. Other keys than those of Zarr metadata (such as NCZarr's)
    are left out.
    """
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(metadata, Mapping):
        problems = [Problem(("metadata",), "missing", "required, an object")]
        raise MetadataValidationError("invalid v2 consolidated metadata", problems, key=V2_KEY)
    number = document.get("zarr_consolidated_format", 1)
    if type(number) is not int or number != 1:
        problems = [Problem(("zarr_consolidated_format",), "value", f"must be 1, got {number!r}")]
        raise MetadataValidationError("unknown format of v2 consolidated metadata", problems, key=V2_KEY)
    raw: dict[str, Documents] = {}
    for key, value in metadata.items():
        path, _, name = key.strip("/").rpartition("/")
        if name in _V2_NAMES:
            raw.setdefault(path, {})[name] = value
    # attributes alone are not a node
    return Consolidated(2, {path: found for path, found in raw.items() if found.keys() - {".zattrs"}})


def dump_v3(nodes: Mapping[str, Mapping[str, JSON]]) -> JSONObject:
    """Return the ``consolidated_metadata`` object of a group, from path relative to it → documents (``{"zarr.json":
    …}``).

    Written in zarr-python's order: by depth, then by case-folded NFKC name. Nested blocks are left out.
    """
    metadata: JSONObject = {}
    for path in sorted(nodes, key=_order):
        document = nodes[path][_V3_KEY]
        if path and isinstance(document, Mapping):
            metadata[path] = {name: value for name, value in document.items() if name != FIELD}
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def dump_v2(nodes: Mapping[str, Mapping[str, JSON]]) -> JSONObject:
    """Return the ``.zmetadata`` document of a group, from path relative to it ("" is the group itself) → documents."""
    metadata: JSONObject = {}
    for path in sorted(nodes):
        for name, document in sorted(nodes[path].items()):
            if isinstance(document, Mapping) and name != ".zattrs":
                document = {field: value for field, value in document.items() if field != FIELD}
            metadata[f"{path}/{name}" if path else name] = document
    return {"zarr_consolidated_format": 1, "metadata": metadata}


def with_entries(
    name: str, document: JSONObject, nodes: Mapping[str, Documents], removed: Collection[str] = ()
) -> JSONObject | None:
    """Update the entries of some nodes in the document called `name` that holds consolidated metadata.

    `nodes`: path relative to the group → documents stored there now, empty for a removed node.
    `removed`: paths below which all old nodes were removed. The blocks of nested groups are merged into the outer map.
    Returns ``None`` when the document has no readable block.

    >>> held = {"metadata": {".zgroup": {}, "x/.zarray": {"shape": [1]}, "x/.zattrs": {}}}
    >>> with_entries(V2_KEY, held, {"x": {".zarray": {"shape": [2]}}})
    {'metadata': {'.zgroup': {}, 'x/.zarray': {'shape': [2]}}}
    """
    found = _block(name, document)
    if found is None:
        return None
    block, held = found
    left = {*removed, *(path for path, documents in nodes.items() if not documents)} - {""}
    if name == _V3_KEY:
        return {**document, FIELD: {**block, "metadata": _entries_v3(held, nodes, left)}}
    return {**document, "metadata": _entries_v2(held, nodes, left)}


def unlisted(name: str, document: JSONObject, paths: Collection[str]) -> set[str]:
    """Select those of `paths` (relative to the group) that have no entry in the document called `name`."""
    found = _block(name, document)
    held = {} if found is None else found[1]
    left = {path for path in paths if path not in held and f"{path}/.zgroup" not in held}
    if found is None or not left:  # as nearly always, which costs no pass over the entries
        return set()
    if name != _V3_KEY:
        return left - {key.strip("/").rpartition("/")[0] for key in held}
    raw: dict[str, Documents] = {}
    _collect(held, "", raw)
    return left - raw.keys()


def _block(name: str, document: JSONObject) -> tuple[Mapping[str, JSON], Mapping[str, JSON]] | None:
    """Return the object with the entries, and the entries; ``None`` when the document has no readable one."""
    block: object = document.get(FIELD) if name == _V3_KEY else document
    held = block.get("metadata") if isinstance(block, Mapping) else None
    if not isinstance(block, Mapping) or not isinstance(held, Mapping):
        return None
    return None if name == _V3_KEY and block.get("kind", "inline") != "inline" else (block, held)


def _entries_v3(held: Mapping[str, JSON], nodes: Mapping[str, Documents], left: Collection[str]) -> JSONObject:
    raw: dict[str, Documents] = {}
    _collect(held, "", raw)
    entries: JSONObject = {
        path: own[_V3_KEY] for path, own in raw.items() if path not in nodes and not _is_below(path, left)
    }
    for path, own in nodes.items():
        if path and _V3_KEY in own:
            entries[path] = {field: value for field, value in own[_V3_KEY].items() if field != FIELD}
    return entries


def _entries_v2(held: Mapping[str, JSON], nodes: Mapping[str, Documents], left: Collection[str]) -> JSONObject:
    entries: JSONObject = {}
    for key, value in held.items():
        path, _, last = key.strip("/").rpartition("/")
        if not (last in _V2_NAMES and path in nodes) and not _is_below(f"{path}/" if path in left else path, left):
            entries[key.strip("/")] = value
    for path, own in nodes.items():
        entries |= {f"{path}/{last}" if path else last: value for last, value in own.items() if last in _V2_NAMES}
    return entries


def _is_below(path: str, groups: Collection[str]) -> bool:
    """Return whether any of `groups` is an ancestor of `path`."""
    while groups and "/" in path:
        path = path.rpartition("/")[0]
        if path in groups:
            return True
    return False


def _order(path: str) -> tuple[int, list[str], str]:
    names = [unicodedata.normalize("NFKC", name).casefold() for name in path.split("/")]
    return len(names), names, path


def _index(raw: Mapping[str, Documents]) -> dict[str, dict[str, Kind]]:
    """Map parent path → name → kind."""
    found: dict[str, dict[str, Kind]] = {}
    for path, documents in raw.items():
        if path:
            parent, _, name = path.rpartition("/")
            found.setdefault(parent, {})[name] = kind_of(documents)
    return found


def kind_of(documents: Mapping[str, JSON]) -> Kind:
    """Return the kind of a node; documents that are not clearly a group count as an array, so that opening it raises a
    full error.
    """
    if _V3_KEY in documents:
        document = documents[_V3_KEY]
        return "group" if isinstance(document, Mapping) and document.get("node_type") == "group" else "array"
    return "array" if ".zarray" in documents else "group"


def _unwrap(value: object, path: str, name: str) -> object:
    """Parse documents that very old ``.zmetadata`` holds as JSON text."""
    if not isinstance(value, str):
        return value
    return strict_json.loads(value.encode(), key=f"{path}/{name}" if path else name, allow_nan=True)
