"""Check one node: its documents, its name, its format among others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tessarr.common import strict_json
from tessarr.core.array_parts.append_reserved import EXPIRE_S
from tessarr.core.array_parts.reservation_io import BESIDE, parse_separate_member
from tessarr.core.asynchronous import clock
from tessarr.core.stored.walk import Entry
from tessarr.errors import MetadataValidationError, NodeNameError, Problem, TessarrError
from tessarr.metadata import consolidated, formats, reservations
from tessarr.metadata.array import ArrayMetadata
from tessarr.model.canonical import canonical
from tessarr.model.comparison import same
from tessarr.model.node import check_member_name
from tessarr.tools.check import legacy
from tessarr.tools.check.report import Action, Finding
from tessarr.types import JSON, Buffer, ZarrFormat

_V2_MEMBERS = ("zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters")


def check_entry(entry: Entry, zarr_format: ZarrFormat, reserved: Buffer | None = None) -> tuple[object, list[Finding]]:
    """Return the node's metadata (``None`` when it cannot be read) and everything that its documents break.

    `reserved` is the object with the reservations of a v2 array, where it has one.
    """
    found: list[Finding] = list(_name(entry, zarr_format))
    numbers = entry.formats
    if len(numbers) > 1:
        message = f"described in Zarr formats {list(numbers)}; readers may use either"
        found.append(
            Finding("DOC-FORMATS", message, entry.path, fix="`tessarr migrate --undo` removes the documents of one")
        )
    if zarr_format == 2 and ".zarray" in entry.values and ".zgroup" in entry.values:
        action = Action("delete", entry.prefix + ".zgroup")
        found.append(Finding("DOC-BOTH", "the array is used", entry.path, action=action))
    found += [*_duplicates(entry), *_legacy(entry)]
    metadata, problems = _parse(entry, zarr_format)
    known = {finding.rule for finding in found if finding.rule.startswith("LEGACY")}
    found += [problem for problem in problems if problem.rule != "DOC-LENIENT" or not known]
    if isinstance(metadata, ArrayMetadata):
        found += _appends(entry, metadata, reserved)
    if zarr_format == 2 and isinstance(metadata, ArrayMetadata):
        found += [
            Finding(
                "DOC-KEY", f"member {name!r} is not in the OGC standard's text", entry.path, entry.prefix + ".zarray"
            )
            for name in entry.json(".zarray")
            if name not in (*_V2_MEMBERS, "dimension_separator")
        ]
    return metadata, found


def _name(entry: Entry, zarr_format: ZarrFormat) -> Iterator[Finding]:
    if not entry.path:
        return
    name = entry.path.rpartition("/")[2]
    try:
        check_member_name(name, zarr_format)
        wrong = 'names beginning with "__" are reserved' if zarr_format == 3 and name.startswith("__") else None
    except NodeNameError as error:
        wrong = str(error)
    if wrong is not None:
        yield Finding("DOC-NAME", wrong, entry.path, fix="Move the node to another name")


def _parse(entry: Entry, zarr_format: ZarrFormat) -> tuple[object, list[Finding]]:
    found: list[Finding] = []
    try:
        metadata, diagnostics = formats.parse_node(zarr_format, entry.documents(zarr_format))
    except MetadataValidationError as error:
        key = entry.prefix + (error.key or "").rpartition("/")[2] if error.key else None
        rule = "DOC-JSON" if "invalid JSON" in error.what else "DOC-INVALID"
        for problem in error.problems or [Problem((), error.kind, str(error))]:
            if problem.kind == "duplicate":
                continue  # `_duplicates` reports them
            found.append(Finding(rule, problem.message, entry.path, key, loc=problem.loc))
        return None, found
    except TessarrError as error:
        return None, [Finding("DOC-INVALID", str(error), entry.path)]
    found += [Finding("DOC-LENIENT", said.message, entry.path) for said in diagnostics]
    return metadata, found


def _appends(entry: Entry, metadata: ArrayMetadata, reserved: Buffer | None) -> Iterator[Finding]:
    """Find appends that are pending or abandoned, and those whose rows another writer filled."""
    key = entry.prefix + ("zarr.json" if reserved is None else BESIDE)
    try:
        member = metadata.pending if reserved is None else parse_separate_member(reserved, key) or None
        if member is None:
            return
        pending = reservations.parse_member(member, metadata.shape)
    except MetadataValidationError as error:
        yield Finding("APPEND-INVALID", str(error), entry.path, key, loc=(reservations.MEMBER,), fix=error.hint or "")
        return
    action = Action("end_appends", key)
    abandoned = pending.abandoned(clock.CLOCK.now(), EXPIRE_S)
    for region in pending.reserved:
        rows = f"rows {region.start} to {region.stop} of axis {pending.axis}"
        if region in abandoned:
            message = (
                f"{rows} were reserved {clock.CLOCK.now() - region.since} s ago; a repair fills them with fill value"
            )
            yield Finding("APPEND-HOLE", message, entry.path, key, fix=_ALIVE, action=action)
        else:
            yield Finding("APPEND-PENDING", f"{rows} are being appended", entry.path, key)
    length = metadata.shape[pending.axis]
    if length < pending.published():  # of v2 arrays, whose shape is in another object
        message = (
            f"rows {length} to {pending.published()} of axis {pending.axis} are published; the shape is {length} still"
        )
        yield Finding("APPEND-BEHIND", message, entry.path, key, fix=_ALIVE, action=action)
    if pending.is_left_closed(clock.CLOCK.now(), EXPIRE_S):
        yield Finding("APPEND-CLOSED", "a resize did not end; appends wait", entry.path, key, fix=_ALIVE, action=action)
    for region in pending.voided:
        message = f"rows {region.start} to {region.stop} of axis {pending.axis} were reserved and never stored"
        yield Finding("APPEND-VOID", message, entry.path, key)


_ALIVE = "Repair only when no process writes to it any more"


def _duplicates(entry: Entry) -> Iterator[Finding]:
    for name in entry.values.keys() - {consolidated.V2_KEY}:  # reported by `check_consolidated`
        key = entry.prefix + name
        repeated: list[strict_json.Loc] = []
        try:
            formats.loads(name, entry.values[name], key=key, duplicates=repeated)
        except MetadataValidationError:
            continue
        for loc in repeated:
            rule = "ATTR-DUPLICATE" if strict_json.in_attributes(key, loc) else "DOC-DUPLICATE"
            message = f"{loc[-1]!r} occurs more than once; the last value is kept by a repair"
            yield Finding(rule, message, entry.path, key, loc=loc, action=Action("rewrite", key, "DOC-DUPLICATE"))


def _legacy(entry: Entry) -> Iterator[Finding]:
    for name in entry.values:
        key = entry.prefix + name
        try:
            document = entry.json(name)
        except MetadataValidationError as error:
            if _has_bare_tokens(entry, name):
                yield Finding("LEGACY-NAN", str(error), entry.path, key)
            elif name not in formats.KEYS[3].all and name not in formats.KEYS[2].all:
                yield Finding("DOC-JSON", str(error), entry.path, key)
            continue
        for rule, say in legacy.findings(name, document):
            yield Finding(rule, say, entry.path, key, action=Action("rewrite", key, rule))


def _has_bare_tokens(entry: Entry, name: str) -> bool:
    """Return whether the document is JSON except for bare NaN and Infinity tokens."""
    try:
        strict_json.loads(entry.values[name], key=name, allow_nan=True)
    except TessarrError:
        return False
    return True


def check_consolidated(entry: Entry, truth: dict[str, Entry], zarr_format: ZarrFormat) -> Iterator[Finding]:
    """Compare consolidated metadata of the group `entry` with the documents themselves (path from the root → node)."""
    key = entry.prefix + ("zarr.json" if zarr_format == 3 else consolidated.V2_KEY)
    action = Action("consolidate", entry.path)
    try:
        block = _block(entry, zarr_format)
    except TessarrError as error:
        yield Finding("CONS-INVALID", str(error), entry.path, key, action=action)
        return
    if block is None:
        stated = entry.json("zarr.json").get(consolidated.FIELD) if zarr_format == 3 else None
        if isinstance(stated, dict) and stated.get("kind", "inline") != "inline":
            yield Finding("CONS-KIND", f"kind {stated.get('kind')!r}; the store is read", entry.path, key)
        elif stated is not None:
            yield Finding("CONS-INVALID", "not an object of metadata", entry.path, key, action=action)
        return
    below = {
        path[len(entry.prefix) :]: node
        for path, node in truth.items()
        if path.startswith(entry.prefix) and path not in ("", entry.path) and zarr_format in node.formats
    }
    for path, node in below.items():
        if block.kind(path) is None:
            yield Finding("CONS-MISSING", f"/{node.path} is not in it", entry.path, key, action=action)
        elif not _agrees(block, path, node, zarr_format):
            yield Finding("CONS-STALE", f"/{node.path} differs", entry.path, key, action=action)
    if zarr_format == 2 and not _agrees(block, "", entry, zarr_format):
        yield Finding("CONS-STALE", f"/{entry.path} itself differs", entry.path, key, action=action)
    for path in block.paths():
        if path not in below:
            yield Finding("CONS-EXTRA", f"{path!r} is not in the store", entry.path, key, action=action)


def _block(entry: Entry, zarr_format: ZarrFormat) -> consolidated.Consolidated | None:
    if zarr_format == 3:
        return consolidated.parse_v3(entry.json("zarr.json").get(consolidated.FIELD))
    if consolidated.V2_KEY not in entry.values:
        return None
    return consolidated.parse_v2(entry.json(consolidated.V2_KEY))


def _agrees(block: consolidated.Consolidated, path: str, node: Entry, zarr_format: ZarrFormat) -> bool:
    try:
        own, with_entries = node.documents(zarr_format), block.node(path)
    except TessarrError:
        return False
    return _normal(own) == _normal(with_entries or {}) or _mean_the_same(own, with_entries or {})


def _mean_the_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two sets of documents differ only in spelling, such as written defaults."""
    if not all(isinstance(document, dict) for document in (*one.values(), *other.values())):
        return False
    spelled = [
        {name: canonical(document) for name, document in documents.items() if name != ".zattrs" or document}
        for documents in (one, other)
    ]
    for documents in spelled:
        for document in documents.values():
            document.pop(consolidated.FIELD, None)
            document.pop(reservations.MEMBER, None)
    return same(*spelled)


def _normal(documents: Mapping[str, JSON]) -> str:
    """Return the same text for equivalent documents: without nested blocks, empty attributes, and stray members of old
    writers.
    """
    kept: dict[str, JSON] = {}
    for name, document in documents.items():
        if isinstance(document, dict):
            left_out = (consolidated.FIELD, reservations.MEMBER)
            document = {field: value for field, value in document.items() if field not in left_out}
            if name == "zarr.json" and not document.get("attributes"):
                document.pop("attributes", None)
            if name == ".zarray" and document.get("dimension_separator") == ".":
                document.pop("dimension_separator")
            if name == ".zattrs" and not document:
                continue
        kept[name] = document
    import json

    return json.dumps(kept, sort_keys=True, default=str)
