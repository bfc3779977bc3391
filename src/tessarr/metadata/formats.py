"""Map each of the three formats to the keys of its documents and to its parser.

Only this package checks versions: other code calls it, or uses an `ArrayMetadata` or `GroupMetadata`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from tessarr.common import strict_json
from tessarr.common.warn import Diagnostic
from tessarr.errors import MetadataValidationError, Problem, ZarrUserWarning
from tessarr.metadata.field import Parsed
from tessarr.metadata.group import parse_group
from tessarr.settings import config
from tessarr.types import JSON, Buffer, JSONObject, ZarrFormat


class Keys(NamedTuple):
    """The documents a node of one format may have, relative to the node."""

    array: str
    group: str | None
    attributes: str | None

    @property
    def all(self) -> tuple[str, ...]:
        """Every key, without repeats."""
        return tuple(dict.fromkeys(key for key in self if key is not None))


KEYS: dict[int, Keys] = {
    3: Keys("zarr.json", "zarr.json", None),
    2: Keys(".zarray", ".zgroup", ".zattrs"),
    1: Keys("meta", None, "attrs"),
}
DOCUMENTS: dict[int, tuple[str, ...]] = {number: keys.all for number, keys in KEYS.items()}
"""The names of the documents of each format, without repeats."""
NODE_DOCUMENTS: dict[int, frozenset[str | None]] = {number: frozenset(keys[:2]) for number, keys in KEYS.items()}
"""The names of the documents that each make a node."""
_NO_NODE_TYPE = ("missing", "required and not there; 'array' or 'group'")
DOCUMENT_NAMES = frozenset(key for keys in KEYS.values() for key in keys.all) | {".zmetadata"}


def is_format(number: object) -> bool:
    """Whether a member ``zarr_format`` names a format: not ``true`` or ``3.0``, which are equal to a number of one."""
    return type(number) is int and number in KEYS


def loads(name: str, data: Buffer, *, key: str, duplicates: list[strict_json.Loc] | None = None) -> Any:
    """Parse one stored document called `name` (relative), naming `key` (full) in errors; see `strict_json.loads`."""
    allow_nan = name != "zarr.json" or bool(config.get("attributes.allow_nan"))
    return strict_json.loads(data, key=key, allow_nan=allow_nan, duplicates=duplicates)


def corrected(name: str, document: JSONObject) -> JSONObject:
    """Return a stored document for rewriting, without parts that are read with a warning and must not be written
    (V2-09).
    """
    from tessarr.metadata import legacy

    if name == ".zarray" and document.get("filters") == []:
        document = {**document, "filters": None}
    if config.get("zarr_python.documents"):
        document, _ = legacy.zarr_python_reads(name, document)
    return legacy.readable(name, document)[0]


def parse_node(zarr_format: ZarrFormat, documents: Mapping[str, object]) -> Parsed:
    """Parse the documents (relative key → JSON) of one node of one format.

    An array wins over a group at one path, with a diagnostic (V2-54). A document that can be read only after a correction
    by `tessarr.metadata.legacy` is corrected, with a diagnostic; not with the setting ``strict``.

    Raises `MetadataValidationError`.
    """
    try:
        return _parse_node(zarr_format, documents)
    except MetadataValidationError:
        meant = _parse_corrected(zarr_format, documents)
        if meant is None:
            raise
        return meant


def _parse_corrected(zarr_format: ZarrFormat, documents: Mapping[str, Any]) -> Parsed | None:
    """Parse the node after the corrections for legacy documents; ``None`` when they do not help."""
    from tessarr.metadata import legacy
    from tessarr.settings import is_strict

    name = KEYS[zarr_format].array
    if is_strict() or not isinstance(documents.get(name), dict):
        return None
    document, diagnostic = _as_zarr_python_reads(name, documents[name])
    document, said = legacy.readable(name, document)
    if document is documents[name]:
        return None
    try:
        node, diagnostics = _parse_node(zarr_format, {**documents, name: document})
    except MetadataValidationError:
        return None
    if diagnostic is not None:
        diagnostics = (*diagnostics, diagnostic)
        node = node.with_(is_corrected=True)
    if said:
        hint = "`tessarr repair` corrects the document"
        message = f"{name} breaks its specification and is read as meant: {'; '.join(said)}. {hint}"
        diagnostics = (*diagnostics, Diagnostic(message))
    return Parsed(node, diagnostics)


def _as_zarr_python_reads(name: str, document: JSONObject) -> tuple[JSONObject, Diagnostic | None]:
    """Correct the document called `name` where zarr-python does and the settings ask for that; return its warning, too."""
    from tessarr.metadata import legacy

    if not config.get("zarr_python.documents"):
        return document, None
    document, warning = legacy.zarr_python_reads(name, document)
    return document, Diagnostic(warning, ZarrUserWarning, names_array=True) if warning else None


def diagnose_corrections(zarr_format: ZarrFormat, documents: Mapping[str, JSON]) -> list[Diagnostic]:
    """Return the warning that parsing the documents of a node would give of corrected chunk shapes, without parsing them."""
    name = KEYS[zarr_format].array
    document = documents.get(name)
    diagnostic = _as_zarr_python_reads(name, document)[1] if isinstance(document, dict) else None
    return [] if diagnostic is None else [diagnostic]


def _parse_node(zarr_format: ZarrFormat, documents: Mapping[str, object]) -> Parsed:
    keys = KEYS[zarr_format]
    parser = importlib.import_module(f"tessarr.metadata.v{zarr_format}")
    if keys.array != keys.group:
        if keys.array not in documents:
            return parse_group(zarr_format, documents)
        node, diagnostics = parser.parse_array(documents)
        if keys.group in documents:
            both = Diagnostic("an array and a group document share one path; the array is used", ZarrUserWarning)
            diagnostics = (both, *diagnostics)
        return Parsed(node, diagnostics)
    document = documents[keys.array]
    kind = document.get("node_type") if isinstance(document, Mapping) else None
    if isinstance(document, Mapping) and kind not in ("array", "group"):
        found = ("value", f"must be 'array' or 'group', got {kind!r}") if "node_type" in document else _NO_NODE_TYPE
        raise MetadataValidationError("invalid v3 metadata", [Problem(("node_type",), *found)], key=keys.array)
    return parse_group(3, documents) if kind == "group" else parser.parse_array(documents)
