"""Migrate a hierarchy to another format by its metadata alone; chunks stay unchanged.

    plan  convert every node in memory, and on request read its chunks both ways; list all blockers
    write the new documents, deepest first and the root's last; after an error, remove the written ones again
    end   keep the old documents, unless `remove_old`; `undo` removes the new ones again

Source: UPG-01 to UPG-10 of the requirements; `tessarr.model.conversion` holds the rules.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from tessarr.common.counted import counted
from tessarr.common.json_merge import merged
from tessarr.core.array import Array
from tessarr.core.array_parts.resize import closed_to_appends
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.locate import locate
from tessarr.core.notebook.bar import shows_progress
from tessarr.core.stored.consolidate import consolidate
from tessarr.core.stored.consolidated import follow_changes
from tessarr.core.stored.create_nodes import withdraw_steps
from tessarr.core.stored.metadata_io import correct_document, keyed_documents, put_document, swap_document
from tessarr.core.stored.walk import Entry, read_entries, walk
from tessarr.core.stored.write_new import layout_of
from tessarr.engine.bound import RuntimeOptions
from tessarr.errors import ConflictError, MetadataValidationError, NodeNotFoundError, Problem, StoreError, TessarrError
from tessarr.metadata import consolidated, formats, serialize
from tessarr.metadata.array import ArrayMetadata
from tessarr.model.conversion import downgrade, upgrade
from tessarr.model.node import check_member_name
from tessarr.model.valid import NodeProblem
from tessarr.stores.base import Store
from tessarr.stores.path import ancestors, prefix_of
from tessarr.stores.protocols import Commit, RenamePrefix
from tessarr.stores.url import StoreLike
from tessarr.tools.sample_boxes import boxes_of
from tessarr.tools.transfer import identical
from tessarr.types import Buffer, JSONObject, Progress, ZarrFormat

Verify = Literal["all", "sample"]


@dataclass(slots=True)
class Step:
    """Describe what happens to one node."""

    path: str
    kind: Literal["array", "group"]
    from_format: ZarrFormat
    documents: dict[str, JSONObject]
    """The new documents: key relative to the node → JSON."""
    old_keys: tuple[str, ...]
    """Full keys of the old documents."""
    notes: list[NodeProblem] = field(default_factory=list)
    """Differences of the new documents."""
    blockers: list[NodeProblem] = field(default_factory=list)
    """Why the node cannot be migrated."""
    metadata: tuple[Any, Any] = (None, None)
    """The node's metadata before and after."""

    def to_json(self) -> JSONObject:
        """Return the step as a JSON object."""
        return {
            "path": self.path,
            "kind": self.kind,
            "from_format": self.from_format,
            "writes": list(self.documents),
            "notes": [note.to_json() for note in self.notes],
            "blockers": [blocker.to_json() for blocker in self.blockers],
        }


@dataclass(slots=True)
class Migration:
    """Hold the plan of a migration, and what was carried out."""

    store: str
    path: str
    to_format: ZarrFormat
    steps: list[Step]
    written: list[str] = field(default_factory=list)
    """Full keys of the written documents."""
    removed: list[str] = field(default_factory=list)
    """Full keys of the removed old documents."""
    verified_chunks: int = 0
    """Number of chunks that were read both ways and found equal."""

    @property
    def blockers(self) -> list[NodeProblem]:
        """The blockers of all nodes."""
        return [blocker for step in self.steps for blocker in step.blockers]

    @property
    def notes(self) -> list[NodeProblem]:
        """The differences of the new documents, of all nodes."""
        return [note for step in self.steps for note in step.notes]

    def to_json(self) -> JSONObject:
        """Return the migration as a JSON object."""
        return {
            "store": self.store,
            "path": self.path,
            "to_format": self.to_format,
            "possible": not self.blockers,
            "nodes": [step.to_json() for step in self.steps],
            "written": list(self.written),
            "removed": list(self.removed),
            "verified_chunks": self.verified_chunks,
        }

    def __str__(self) -> str:
        done = "migrated" if self.written else "to migrate"
        lines = [f"{counted(len(self.steps), 'node')} {done} to Zarr v{self.to_format} in {self.store}"]
        for step in self.steps:
            lines.append(f"  /{step.path} ({step.kind}, v{step.from_format})")
            lines += [f"    blocked: {blocker.message}" for blocker in step.blockers]
            lines += [f"    note: {note.message}" for note in step.notes]
        return "\n".join(lines)


@shows_progress()
def migrate(
    store: StoreLike,
    *,
    to_format: ZarrFormat = 3,
    path: str = "",
    dry_run: bool = False,
    remove_old: bool = False,
    overwrite: bool = False,
    verify: Verify | None = "sample",
    keep_array_dimensions: bool = False,
    progress: Progress | None = None,
) -> Migration:
    """Describe the hierarchy at `path` in another Zarr format, beside its present description.

    v1 → v2 or v3, v2 → v3, and v3 → v2 where v2 can express it. With `verify` chunks of every array are read both ways
    and compared before anything is written ("sample": up to 8 per array, spread over it; "all": every one). Groups that
    were consolidated are consolidated in the new format. `remove_old` removes the old documents at the end.
    `overwrite` replaces existing documents of the new format. `dry_run` only plans.

    Repeat a migration that was stopped (killed) to finish it, or revert it by `undo`: until the root's new document is
    written, which comes last, the hierarchy is read as before. What other writers change meanwhile is in the new documents
    too. Objects that were opened before raise `StaleNodeError` when they are to change documents: open them again.

    Raises `MetadataValidationError` listing every blocker of every node, before anything is written (a dry run returns
    them); `NodeNotFoundError` when there is nothing to migrate; `ConflictError` when another migration was faster.
    """
    place, path, _ = locate(store, path, "r+")
    plan = _plan(place, path, to_format, keep_array_dimensions, overwrite)
    if remove_old:
        _refuse_mixing(place, plan)
    if verify is not None and not plan.blockers:
        _verify(place, plan, verify, progress)
    if dry_run:
        return plan
    _refuse_blocked(place, plan)
    written: dict[str, bytes] = {}
    planned_again = partial(_plan, place, path, to_format, keep_array_dimensions, True)

    def settle(*, removes: bool) -> None:
        if plan.steps[0].from_format != 1:  # of a v1 array only the chunks change
            _settle(place, plan, written, planned_again, removes)

    conflict: ConflictError | None = None
    with closed_to_appends(_appended(place, plan)) as closed:
        if closed:  # what was pending has ended
            _renew(plan, planned_again())
        try:
            _write(place, plan, progress, overwrite, written)
        except ConflictError as error:  # the other migration may have read later what these documents were made of
            conflict = error
    settle(removes=conflict is None and not isinstance(place, RenamePrefix))
    if conflict is not None:
        raise conflict
    if remove_old:
        for step in reversed(plan.steps):
            place.delete_many(step.old_keys)
            plan.removed += step.old_keys
    if path:
        follow_changes(place, [step.path for step in plan.steps])
    return plan


def undo(store: StoreLike, *, path: str = "", zarr_format: ZarrFormat = 3) -> list[str]:
    """Remove the documents of `zarr_format` from every node at and below `path`; returns the keys removed.

    Raises `MetadataValidationError`, having removed nothing, when a node has no documents of another format: it would
    no longer be a node.
    """
    place, path, _ = locate(store, path, "r+")
    entries = [entry for entry in walk(place, path) if zarr_format in entry.formats]
    orphans = [entry.path for entry in entries if entry.formats == (zarr_format,)]
    if orphans:
        problems = [Problem((f"/{item}",), "value", "has no documents of another format") for item in orphans]
        raise MetadataValidationError(f"removing Zarr v{zarr_format} metadata would lose nodes", problems)
    return remove_metadata(place, zarr_format, path=path)


def remove_metadata(store: StoreLike, zarr_format: ZarrFormat, *, path: str = "", dry_run: bool = False) -> list[str]:
    """Remove every document of one format at and below `path` (no chunk); returns the keys, children before parents."""
    place, path, _ = locate(store, path, "r+")
    keys: list[str] = []
    names = [*formats.KEYS[zarr_format].all, *([consolidated.V2_KEY] if zarr_format == 2 else [])]
    entries = [entry for entry in walk(place, path) if zarr_format in entry.formats]
    for entry in reversed(entries):
        keys += [entry.prefix + name for name in reversed(names) if name in entry.values]
    if not dry_run:
        place.delete_many(keys)
        if path:
            follow_changes(place, [entry.path for entry in entries])
    return keys


# -- the plan ----------------------------------------------------------------------------------------------------------


def _plan(store: Store, path: str, to_format: ZarrFormat, keep_dimensions: bool, overwrite: bool) -> Migration:
    found = _from_format(store, path, to_format)
    entries = walk(store, path, zarr_format=found)
    if not entries:
        raise _deleted(store, path)
    steps = [_step(entry, found, to_format, keep_dimensions) for entry in entries]
    _consolidate(steps, to_format)
    begun = to_format not in entries[0].formats  # the root's document is written last
    for entry, step in zip(entries, steps, strict=True):
        if to_format not in entry.formats or overwrite:
            continue
        if begun and step.documents and _holds(entry, step.documents, to_format):
            step.notes.append(
                NodeProblem(entry.path, (), "note", "was written already by a migration that was stopped")
            )
            continue
        message = f"has Zarr v{to_format} metadata already; give overwrite=True to replace it"
        step.blockers.append(NodeProblem(entry.path, (), "exists", message))
    return Migration(store.url, path, to_format, steps)


def _holds(entry: Entry, documents: dict[str, JSONObject], to_format: ZarrFormat) -> bool:
    """Return whether the node's documents of the new format are (some of) `documents`, byte for byte."""
    new = serialize.dumps(documents)
    there = {name for name in (*formats.KEYS[to_format].all, consolidated.V2_KEY) if name in entry.values}
    there -= {consolidated.V2_KEY} if to_format == 3 else set()
    return all(name in new and bytes(entry.values[name]) == new[name] for name in there)


def _refuse_blocked(store: Store, plan: Migration) -> None:
    """Raise `MetadataValidationError` that lists the blockers, if there are any."""
    if plan.blockers:
        problems = [Problem((f"/{item.path}", *item.loc), item.kind, item.message) for item in plan.blockers]
        message = f"the hierarchy cannot be migrated to Zarr v{plan.to_format}"
        raise MetadataValidationError(message, problems, store=store.url, path=f"/{plan.path}")


def _refuse_mixing(store: Store, plan: Migration) -> None:
    """Refuse to remove old documents of a part of a hierarchy: its groups above would have another format (ZOM-24)."""
    step = plan.steps[0]
    above = [entry for entry in read_entries(store, list(ancestors(step.path))) if entry.formats]
    if any(plan.to_format not in entry.formats for entry in above):
        message = f"the groups above are Zarr v{step.from_format}, and would lose the node with its old documents"
        step.blockers.append(NodeProblem(step.path, (), "value", f"{message}; migrate the whole hierarchy"))


def _from_format(store: Store, path: str, to_format: ZarrFormat) -> ZarrFormat:
    (entry,) = read_entries(store, [path])
    candidates: list[ZarrFormat] = [number for number in entry.formats if number != to_format]
    if not candidates:
        hint = f"It is Zarr v{to_format} already" if entry.formats else "Check the path"
        raise NodeNotFoundError("nothing to migrate here", store=store.url, path=f"/{path}", hint=hint)
    return candidates[0]


def _step(entry: Entry, found: ZarrFormat, to_format: ZarrFormat, keep_dimensions: bool) -> Step:
    kind: Literal["array", "group"] = "group" if entry.is_group(found) else "array"
    names = [*formats.KEYS[found].all, *([consolidated.V2_KEY] if found == 2 else [])]
    old = tuple(entry.prefix + name for name in names if name in entry.values)
    step = Step(entry.path, kind, found, {}, old)
    try:
        if entry.path:
            check_member_name(entry.path.rpartition("/")[2], to_format)
        before, diagnostics = formats.parse_node(found, entry.documents(found))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            converted = _converted(before, found, to_format, keep_dimensions)
        said = [*(item.message for item in diagnostics), *(str(warning.message) for warning in caught)]
        step.notes += [NodeProblem(entry.path, (), "note", message) for message in said]
        step.notes += [NodeProblem(entry.path, (), "note", note) for note in converted.notes]
        step.documents = converted.metadata.documents()
        step.metadata = (before, converted.metadata)
    except TessarrError as error:
        problems = getattr(error, "problems", None) or [Problem((), error.kind, str(error))]
        step.blockers = [NodeProblem(entry.path, item.loc, item.kind, item.message) for item in problems]
    return step


def _converted(node: Any, found: ZarrFormat, to_format: ZarrFormat, keep_dimensions: bool) -> upgrade.Converted:
    if not isinstance(node, ArrayMetadata):
        return upgrade.group_to_v3(node) if to_format == 3 else downgrade.group_to_v2(node)
    if to_format == 3:
        return upgrade.array_to_v3(node, keep_array_dimensions=keep_dimensions)
    if to_format == 2:
        return upgrade.array_to_v2(node) if found == 1 else downgrade.array_to_v2(node)
    raise MetadataValidationError("Zarr v1 is only read, never migrated to", expected="to_format 2 or 3", got=to_format)


def _consolidate(steps: list[Step], to_format: ZarrFormat) -> None:
    """Consolidate the new groups whose old documents were consolidated."""
    by_path = {step.path: step for step in steps}
    for step in steps:
        if step.kind != "group" or step.blockers or not _was_consolidated(step):
            continue
        prefix = prefix_of(step.path)
        below = {
            path[len(prefix) :]: other.documents
            for path, other in by_path.items()
            if path.startswith(prefix) and path != step.path and other.documents
        }
        if to_format == 3:
            document = {**step.documents["zarr.json"], consolidated.FIELD: consolidated.dump_v3(below)}
            step.documents = {"zarr.json": document}
        else:
            own = {name: step.documents[name] for name in step.documents}
            step.documents = {**own, consolidated.V2_KEY: consolidated.dump_v2({"": own, **below})}


def _was_consolidated(step: Step) -> bool:
    if step.from_format == 3:
        return consolidated.FIELD in getattr(step.metadata[0], "extra", {})
    return any(key.rpartition("/")[2] == consolidated.V2_KEY for key in step.old_keys)


# -- verification and writing --------------------------------------------------------------------------------------------


def _verify(store: Store, plan: Migration, verify: Verify, progress: Progress | None) -> None:
    """Read chunks with the old and the new metadata, both in memory, and compare."""
    arrays = [step for step in plan.steps if step.kind == "array"]
    for number, step in enumerate(arrays):
        if progress:
            progress(number, len(arrays), f"verify /{step.path}")
        try:
            before, after = (_opened(store, step.path, metadata) for metadata in step.metadata)
            for box in boxes_of(step.metadata[0], sample=verify == "sample"):
                if not identical(np.asarray(before[box]), np.asarray(after[box])):
                    where = ", ".join(f"{part.start}:{part.stop}" for part in box)
                    message = f"values differ in [{where}] when read as Zarr v{plan.to_format}"
                    step.blockers.append(NodeProblem(step.path, (), "value", message))
                    break
                plan.verified_chunks += 1
        except TessarrError as error:
            step.blockers.append(NodeProblem(step.path, (), error.kind, f"cannot be read to compare: {error}"))


def _opened(store: Store, path: str, metadata: ArrayMetadata, *, read_only: bool = True) -> Array:
    return Array._make(store, path, metadata, RuntimeOptions(), read_only=read_only, order=None)


def _appended(store: Store, plan: Migration) -> list[Array]:
    """Return the arrays of Zarr v2, whose appends and resizes are entered in another object than those of the new format."""
    return [
        _opened(store, step.path, step.metadata[0], read_only=False)._with_format_found_at(None)
        for step in plan.steps
        if (step.kind, step.from_format) == ("array", 2)
    ]


def _renew(plan: Migration, again: Migration) -> None:
    """Replace the new documents by those of a later plan."""
    documents = {step.path: step.documents for step in again.steps}
    for step in plan.steps:
        step.documents = documents.get(step.path) or step.documents


def _write(
    store: Store, plan: Migration, progress: Progress | None, overwrite: bool, written: dict[str, bytes]
) -> None:
    """Write the documents, deepest first, and add them to `written`: key → value. After an error they are removed again.

    Without `overwrite` a document that another writer has created since stays. Raises `ConflictError` when that is the
    document of the first node, which makes the new description valid: another migration has finished.
    """
    steps = sorted(plan.steps, key=lambda step: -len(step.path.split("/")) if step.path else 1)
    before: dict[str, Buffer | None] = {}
    try:
        for number, step in enumerate(steps):
            if progress:
                progress(number, len(steps), f"write /{step.path}")
            for key, data in keyed_documents(step.path, step.documents).items():
                before[key], written[key] = store.get(key), data  # first: the answer may be lost
                if not _write_document(store, step, key, data, overwrite):
                    del before[key], written[key]
                    if step is plan.steps[0]:  # there was none when the plan was made
                        raise _other_migration(store, plan) if store.exists(key) else _deleted(store, plan.path)
                    continue
                plan.written.append(key)
    except ConflictError:  # the documents are those of the other migration
        raise
    except BaseException:
        for key, old in reversed(before.items()):
            swap_document(store, key, written.get(key), old)
        plan.written.clear()
        written.clear()
        raise


def _write_document(store: Store, step: Step, key: str, data: bytes, overwrite: bool) -> bool:
    """Write a document; without `overwrite` unless there is one. Returns ``False`` where there is one, or the node is gone.

    A node is removed with its new document. So one that is gone now either had that, or was removed before: it must not be
    described again. Of a root the old documents alone are removed.
    """
    try:
        if not put_document(store, key, data, overwrite=overwrite):
            return False
    except StoreError:  # on local files: the directory was removed or moved
        if any(store.exists(old) for old in step.old_keys):
            raise
        return False
    if not step.path or store.exists(step.old_keys[0]):
        return True
    run_steps(withdraw_steps(store, key, data))
    return False


def _deleted(store: Store, path: str) -> NodeNotFoundError:
    return NodeNotFoundError("the node was deleted or replaced meanwhile", store=store.url, path=f"/{path}")


def _other_migration(store: Store, plan: Migration) -> ConflictError:
    return ConflictError(
        f"another writer has described this node in Zarr v{plan.to_format} at the same time",
        store=store.url,
        path=f"/{plan.path}",
        hint="Another migration has finished: open the hierarchy again",
    )


def _follow(store: Store, key: str, written: bytes | None, data: bytes | None) -> None:
    """Change the document at `key` from `written` to `data`.

    What another writer has changed in a document of Zarr v3 meanwhile stays, and the rest is added to it. A document
    that another writer has changed is left as it is where the old documents describe another node now.
    """
    if written is None or data is None or not key.endswith("zarr.json") or layout_of(written) != layout_of(data):
        swap_document(store, key, written, data)
        return

    def change(stored: Buffer) -> bytes | None:
        if bytes(stored) == written:
            return data
        return merged(written, data, stored, keep_other=True) if layout_of(stored) == layout_of(written) else None

    correct_document(store, key, change)


def _settle(
    store: Store, plan: Migration, written: dict[str, bytes], replan: Callable[[], Migration], removes: bool
) -> None:
    """Apply what other writers changed in the old documents since the plan, until nothing changes any more.

    From when the first node's new document is there, writers that open the hierarchy change the new documents. Those stay,
    and what others changed in the old ones is added to them. `removes`: whether the new document of a node is removed whose
    old one is gone. Where nodes are removed in one step it is gone already, or others have created it since.
    """
    while True:
        steps: list[Step] = []
        with suppress(NodeNotFoundError):  # deleted since
            steps = [step for step in replan().steps if step.documents]
        described = [(step, keyed_documents(step.path, step.documents)) for step in steps]
        owners = {key: step for step, documents in described for key in documents}
        now = {key: data for _, documents in described for key, data in documents.items()}
        changes = {key: now.get(key) for key in written.keys() | now.keys() if written.get(key) != now.get(key)}
        for key, data in changes.items():
            if data is not None and key not in written:
                _write_document(store, owners[key], key, data, overwrite=False)
            elif data is not None or (removes and steps):  # of a hierarchy without old documents these may be all
                _follow(store, key, written.get(key), data)
        # A node that was replaced in the old format has lost its new document. Where nodes are removed by several requests, it
        # may be one that is being removed.
        gone = [key for key in now if not store.exists(key)] if isinstance(store, Commit) else []
        for key in gone:
            _write_document(store, owners[key], key, now[key], overwrite=False)
        if not changes and not gone:
            break
        written = now
    if plan.to_format == 3:
        for step in reversed(plan.steps):
            if consolidated.FIELD in step.documents.get("zarr.json", {}):
                with suppress(NodeNotFoundError):  # deleted since
                    consolidate(store, step.path, 3)
