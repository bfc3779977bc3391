"""Check a store: documents against the specifications, consolidated metadata against the documents, and stored values.

    documents    always: every node's documents, names, formats, consolidated metadata, conventions
    data="stat"  also the stored keys: chunks outside the shape, stray and temporary keys, chunks with another separator
    data="size"  also the size of every chunk, and the index of every shard
    data="decode"  also the content of every chunk, checksums included

Every finding has a stable rule id (`tessarr.tools.check.report.RULES`), a location, a severity, a suggested fix, and an
action if `tessarr.tools.repair` can carry it out.
"""

from __future__ import annotations

import json
import os
import time
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tessarr import registry
from tessarr.core.array_parts.reservation_io import BESIDE
from tessarr.core.asynchronous import clock
from tessarr.core.claims.intents import CLAIM, RECORD, Record
from tessarr.core.claims.left import is_abandoned
from tessarr.core.claims.removals import Claim
from tessarr.core.claims.settle import is_fresh
from tessarr.core.locate import locate
from tessarr.core.notebook.bar import shows_progress
from tessarr.core.stored.walk import Entry, read_entries, walk
from tessarr.errors import JournalError, NodeNotFoundError
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Fetch, Store
from tessarr.stores.protocols import PlainFiles
from tessarr.stores.url import StoreLike
from tessarr.tools.check.chunks import STAGING, UNKNOWN, kept
from tessarr.tools.check.documents import check_consolidated, check_entry
from tessarr.tools.check.report import RULES, Action, Finding, Level, Report
from tessarr.types import JSON, Buffer, Progress, ZarrFormat

_LEVELS, _WIDTH = 5, 1000
"""Depth and width of the search for nodes below a prefix that is not a group."""
LEFTOVER_AGE_S = 3600
"""Temporary files younger than this may still be in use."""

__all__ = ["RULES", "Action", "Finding", "Level", "Report", "check"]


@shows_progress()
def check(
    store: StoreLike,
    *,
    path: str = "",
    data: Level | None = None,
    jobs: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    conventions: bool = True,
    progress: Progress | None = None,
) -> Report:
    """List the problems of the hierarchy at `path`, and remarks about it.

    `store` is a store, a path or URL, or an opened array or group. `jobs` threads check chunks (4 by default).
    `resume` names a file that records finished arrays, so that a stopped check can be resumed. `conventions` also checks
    attributes against the conventions that they follow.

    Raises `NodeNotFoundError` when there is nothing at `path`; problems of nodes are only reported, never raised.
    """
    place, path, _ = locate(store, path, "r")
    report, nodes = check_documents(place, path, data, conventions=conventions, progress=progress)
    if data is not None:
        check_values = registry.higher("tessarr.plan.check_values")
        journal = _Journal(resume, place.url, data)
        check_values(place, path, nodes, report, jobs=jobs or 4, journal=journal, progress=progress)
    return report


def check_documents(
    place: Store, path: str, data: Level | None, *, conventions: bool = True, progress: Progress | None = None
) -> tuple[Report, dict[str, ArrayMetadata]]:
    """Check everything but stored values. Returns a report, and the arrays whose values may be checked, by path.

    Raises `NodeNotFoundError` when there is nothing at `path`.
    """
    entries = _entries(place, path)
    if not entries:
        raise NodeNotFoundError("nothing to check here", store=place.url, path=f"/{path}", hint="Check the path")
    report = Report(place.url, path, data)
    top = entries[path].formats[0]
    lost = _missing_groups(place, entries)
    report.add(_missing_group(missing, top) for missing in sorted(lost))
    reserved = _reserved(place, entries)
    nodes: dict[str, JSON] = {}
    arrays: dict[str, ArrayMetadata] = {}
    for number, entry in enumerate(entries.values()):
        if progress:
            progress(number, len(entries), f"/{entry.path}")
        metadata = _check_node(place, entry, entries, lost, top, report, reserved.get(entry.path))
        nodes[entry.path] = metadata
        if isinstance(metadata, ArrayMetadata):
            arrays[entry.path] = metadata
    if conventions:
        report.add(_conventions(nodes))
    if data is not None:
        report.add(_leftovers(place))
    return report, arrays


def _entries(store: Store, path: str) -> dict[str, Entry]:
    """Read every node of any format, by path; mixed ones too."""
    found = {entry.path: entry for entry in walk(store, path)}
    return {place: entry for place, entry in found.items() if not place.rpartition("/")[2].startswith(STAGING)}


def _missing_groups(store: Store, entries: dict[str, Entry]) -> set[str]:
    """Return the paths above nodes that are not groups themselves; add these nodes to `entries`."""
    missing: set[str] = set()
    groups = [entry for entry in entries.values() if entry.children]
    while groups:
        new: list[Entry] = []
        for entry in groups:
            for name in entry.children:
                below = entry.prefix + name
                if below not in entries and not name.startswith(STAGING):
                    new += _nodes_below(store, below, missing)
        found = {node.path: node for node in new if node.path not in entries}
        entries.update(found)
        groups = [node for node in found.values() if node.children]
    return missing


def _nodes_below(store: Store, prefix: str, missing: set[str]) -> list[Entry]:
    """Find the nodes below a prefix that is not a node, in a few levels; add the groups that are missing to `missing`."""
    waiting, found = [prefix], list[Entry]()
    for _ in range(_LEVELS):
        below = [child[:-1] for parent in waiting for child in store.list_dir(f"{parent}/").prefixes][:_WIDTH]
        if not below:
            break
        tops = [entry.path for entry in read_entries(store, below) if entry.formats]
        for top in tops:
            found += walk(store, top)
            above = top.rpartition("/")[0]
            while len(above) >= len(prefix):
                missing.add(above)
                above = above.rpartition("/")[0]
        waiting = [path for path in below if path not in tops]
    return found


def _missing_group(path: str, zarr_format: ZarrFormat) -> Finding:
    action = Action("create_group", path, str(zarr_format))
    return Finding("HIER-NOGROUP", f"nodes exist below /{path}, which is not a group", path, action=action)


def _reserved(store: Store, entries: dict[str, Entry]) -> dict[str, Buffer]:
    """Return the objects beside the documents of v2 arrays that say which rows are reserved, by path."""
    paths = [entry.path for entry in entries.values() if ".zarray" in entry.values]
    found = store.fetch([Fetch(entries[path].prefix + BESIDE) for path in paths]) if paths else []
    return {path: values[0] for path, values in zip(paths, found, strict=True) if values is not None}


def _check_node(
    store: Store,
    entry: Entry,
    entries: dict[str, Entry],
    lost: set[str],
    top: ZarrFormat,
    report: Report,
    reserved: Buffer | None,
) -> Any:
    zarr_format = top if top in entry.formats else entry.formats[0]
    metadata, found = check_entry(entry, zarr_format, reserved if zarr_format == 2 else None)
    report.add(found)
    if zarr_format != top:
        message = f"a Zarr v{zarr_format} node in a v{top} hierarchy"
        report.add([Finding("HIER-MIXED", message, entry.path, fix="Migrate it: `tessarr migrate`")])
    if not entry.is_group(zarr_format):
        report.arrays += 1
        return metadata
    report.groups += 1
    report.add(check_consolidated(entry, entries, zarr_format))
    report.add(_unexpected_names(store, entry, entries, lost))
    report.add(_spellings(entry))
    return metadata


def _unexpected_names(store: Store, entry: Entry, entries: dict[str, Entry], lost: set[str]) -> Iterator[Finding]:
    """Yield findings for keys directly in a group that are not documents, and prefixes in it that are not nodes."""
    for name in entry.keys:
        if name not in entry.values and not name.startswith(".nc"):
            yield from _unexpected_key(store, entry, name)
    for name in entry.children:
        below = entry.prefix + name
        if below in entries or below in lost:
            continue
        if name.startswith(STAGING):
            yield kept(entry.path, below)
        elif not isinstance(store, PlainFiles) and store.exists(f"{below}/{CLAIM}"):
            yield from _claim(store, entry, f"{below}/{CLAIM}")
        else:
            yield Finding("DOC-STRAY", f"/{below} holds keys and is not a node", entry.path, below, fix=UNKNOWN)


def _spellings(entry: Entry) -> Iterator[Finding]:
    """Yield findings for names that some file systems and programs take for another name.

    Source: zarr-specs issue 201; macOS normalizes names, other systems do not.
    """
    names: dict[str, str] = {}
    for name in entry.children:
        form = unicodedata.normalize("NFC", name)
        below = entry.prefix + name
        if name != form:
            fix = "Rename it, or open the place by NormalizingStore"
            yield Finding("KEY-UNICODE", f"/{below} is not in form C", entry.path, below, fix=fix)
        other = names.setdefault(form, name)
        if other != name:
            message = f"/{below} and /{entry.prefix}{other} are equal in form C"
            yield Finding("KEY-ALIKE", message, entry.path, below, fix="Rename one of them")


def _transaction(store: Store, entry: Entry, key: str) -> Finding:
    """Describe what a transaction has left at the `key` of its record."""
    data = store.get(key)
    try:
        record = None if data is None else Record.parse(data, key)
    except JournalError as error:
        return Finding("TRANSACTION-INVALID", str(error), entry.path, key, fix=error.hint or "")
    if record is None:
        return Finding("TRANSACTION-PENDING", "a transaction has ended during this check", entry.path, key)
    message = f"a transaction that began {clock.CLOCK.now() - record.since} s ago is {record.state}"
    if is_fresh(record):
        return Finding("TRANSACTION-PENDING", message, entry.path, key)
    return Finding("TRANSACTION-LEFT", message, entry.path, key, action=Action("end_transaction", key))


def _claim(store: Store, entry: Entry, key: str) -> Iterator[Finding]:
    """Describe the claim at `key` of a node that a transaction was creating, unless its record tells of it; or of a removal."""
    if not is_abandoned(store, key):
        return
    if Claim.parse(store.get(key), key) is not None:
        message = "a removal that did not end has left chunks of a node here"
        yield Finding("REMOVAL-LEFT", message, entry.path, key, action=Action("end_removal", key))
        return
    message = "a transaction that did not end was creating a node here"
    yield Finding("TRANSACTION-LEFT", message, entry.path, key, action=Action("end_transaction", key))


def _unexpected_key(store: Store, entry: Entry, name: str) -> Iterator[Finding]:
    key = entry.prefix + name
    if name.endswith((".partial", ".tmp", ".temp", ".part")):
        yield Finding(
            "KEY-TEMPORARY", "left by a writer that was stopped", entry.path, key, action=Action("delete", key)
        )
    elif name == CLAIM:
        yield from _claim(store, entry, key)
    elif name.startswith(RECORD):
        yield _transaction(store, entry, key)
    elif name not in ("meta", "attrs"):
        yield Finding("DOC-STRAY", "a group holds documents only", entry.path, key, fix=UNKNOWN)


def _leftovers(store: Store) -> Iterator[Finding]:
    """Find hidden temporary files that killed writers of tessarr left in a directory; no store lists them."""
    from tessarr.stores.local.lock import TEMPORARY_SUFFIX
    from tessarr.stores.local.store import LocalStore

    if not isinstance(store, LocalStore):
        return
    for folder, folders, files in os.walk(store.root):
        hidden = [name for name in (*folders, *files) if name.startswith(".") and name.endswith(TEMPORARY_SUFFIX)]
        folders[:] = [name for name in folders if name not in hidden]
        for name in hidden:
            key = Path(folder, name).relative_to(store.root).as_posix()
            if time.time() - os.lstat(Path(folder, name)).st_mtime > LEFTOVER_AGE_S:
                action = Action("leftovers", detail=str(LEFTOVER_AGE_S))
                yield Finding("KEY-TEMPORARY", "left by a writer that was stopped", "", key, action=action)


def _conventions(nodes: Mapping[str, JSON]) -> Iterator[Finding]:
    from tessarr.conventions import check_hierarchy

    for path, problem in check_hierarchy({path: node for path, node in nodes.items() if node is not None}):
        own = problem.rule in RULES and RULES[problem.rule][0] == problem.severity
        message, loc = f"{problem.convention}: {problem.message}", ("attributes", *problem.loc)
        stated = None if own else problem.severity
        yield Finding(problem.rule, message, path, loc=loc, fix=problem.fix, stated=stated)


class _Journal:
    """Record each finished array as a line of JSON, after a first line that identifies the check."""

    def __init__(self, file: str | os.PathLike[str] | None, store: str, data: Level | None) -> None:
        self.file = None if file is None else Path(file)
        self.head = {"store": store, "data": data}
        self.done: dict[str, dict[str, JSON]] = {}
        if self.file is not None and self.file.exists():
            lines = self.file.read_text(encoding="utf-8").splitlines()
            parsed = [found for line in lines if (found := _line(line)) is not None]
            if parsed and parsed[0] == self.head:
                self.done = {line["path"]: line for line in parsed[1:]}
                return
        if self.file is not None:
            self.file.write_text(json.dumps(self.head) + "\n", encoding="utf-8")

    def finished(self, path: str) -> dict[str, JSON] | None:
        """Return the findings in the array at `path` before the check was stopped; ``None`` for an unfinished array."""
        return self.done.get(path)

    def record(self, path: str, done: Mapping[str, JSON]) -> None:
        """Record a finished array."""
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"path": path, **done}) + "\n")


def _line(text: str) -> Any:
    """Parse a line of the journal; ``None`` for one that was truncated when the check was stopped."""
    try:
        return json.loads(text)
    except ValueError:
        return None
