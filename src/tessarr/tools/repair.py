"""Repair what a check reported as repairable: nothing else, announced first, with a backup of replaced values.

Every value that is changed or removed is first copied to ``__tessarr_repair/<number>/<its key>`` in the same store (a
name that no node can have), from where `restore` copies it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tessarr.core.locate import locate
from tessarr.core.stored.metadata_io import correct_document, keyed_documents, put_document, replace_documents
from tessarr.errors import TessarrError
from tessarr.metadata import formats, serialize
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.base import Store
from tessarr.stores.protocols import List
from tessarr.stores.url import StoreLike
from tessarr.tools.check import legacy
from tessarr.tools.check.report import Action, Report
from tessarr.types import Buffer, JSONObject

BACKUP = "__tessarr_repair"


@dataclass(slots=True)
class Step:
    """Describe one action and its outcome."""

    action: Action
    rules: tuple[str, ...]
    """Rules of the findings that the action repairs."""
    outcome: Literal["planned", "done", "not needed", "failed"] = "planned"
    message: str = ""

    def to_json(self) -> JSONObject:
        """Return the step as a JSON object."""
        return {
            "action": self.action.to_json(),
            "rules": list(self.rules),
            "outcome": self.outcome,
            "message": self.message,
        }

    def __str__(self) -> str:
        return f"{self.outcome:10} {self.action} ({', '.join(self.rules)})" + (
            f": {self.message}" if self.message else ""
        )


@dataclass(slots=True)
class Repair:
    """Describe what a repair does, or did."""

    store: str
    steps: list[Step] = field(default_factory=list)
    backup: str | None = None
    """Prefix in the store under which replaced values are kept."""

    @property
    def ok(self) -> bool:
        """Whether no step failed."""
        return all(step.outcome != "failed" for step in self.steps)

    def to_json(self) -> JSONObject:
        """Return the repair as a JSON object."""
        return {"store": self.store, "backup": self.backup, "steps": [step.to_json() for step in self.steps]}

    def __str__(self) -> str:
        kept = f"; replaced values are kept under {self.backup}" if self.backup else ""
        return "\n".join([f"{self.store}: {len(self.steps)} repairs{kept}", *(f"  {step}" for step in self.steps)])


def repair(
    report: Report,
    store: StoreLike = None,
    *,
    dry_run: bool = True,
    rules: tuple[str, ...] = (),
    give_up_data: bool = False,
) -> Repair:
    """Carry out the repairs in `report`; with `dry_run` (the default) only list them.

    `store` defaults to the one named in the report. `rules` limits the repair to findings of these rules. `give_up_data`
    also moves damaged chunks away, so that the rest of the array can be read; their values become the fill value.
    A step that fails is reported and does not stop the others; documents are read again before they are changed.
    """
    place, _, _ = locate(report.store if store is None else store, "", "r" if dry_run else "r+")
    result = Repair(place.url, _steps(report, rules, give_up_data))
    if dry_run or not result.steps:
        return result
    place._check_writable("")
    backup = _Backup(place)
    for step in result.steps:
        try:
            step.outcome = "done" if _do(place, step.action, backup) else "not needed"
        except (TessarrError, OSError, ValueError) as error:
            step.outcome, step.message = "failed", str(error)
    _follow(place, (step.action.key for step in result.steps if step.outcome == "done"))
    result.backup = backup.prefix if backup.used else None
    return result


def _follow(store: Store, keys: Iterable[str]) -> None:
    """Update consolidated metadata for documents that were changed or removed."""
    from tessarr.core.stored.consolidated import follow_changes

    paths = [
        key.rpartition("/")[0] for key in keys if key.rpartition("/")[2] in formats.DOCUMENT_NAMES - {".zmetadata"}
    ]
    if paths:
        follow_changes(store, list(dict.fromkeys(paths)))


_SEQUENCE = (
    *("leftovers", "end_transaction", "end_removal"),
    "create_group",
    "rewrite",
    "separator",
    *("delete", "delete_outside", "quarantine"),
    *("end_appends", "consolidate"),
)
"""Order of actions. Consolidating comes last, when the documents are correct."""


def _steps(report: Report, rules: tuple[str, ...], give_up_data: bool) -> list[Step]:
    found: dict[Action, list[str]] = {}
    for finding in report.findings:
        wanted = finding.repairable or (give_up_data and finding.action is not None)
        if wanted and finding.action is not None and (not rules or finding.rule in rules):
            named = found.setdefault(finding.action, [])
            if finding.rule not in named:
                named.append(finding.rule)
    ordered = sorted(found, key=lambda action: _SEQUENCE.index(action.kind))
    return [Step(action, tuple(found[action])) for action in ordered]


class _Backup:
    """Copy values before they are replaced, once each."""

    def __init__(self, store: Store) -> None:
        self.store = store
        taken = [int(name) for name in _numbers(store)]
        self.prefix = f"{BACKUP}/{max(taken, default=0) + 1}/"
        self.used: set[str] = set()

    def save(self, key: str, value: Buffer | None) -> None:
        if value is not None and key not in self.used:
            self.store.set(self.prefix + key, value)
            self.used.add(key)


def _numbers(store: Store) -> Iterator[str]:
    if isinstance(store, List):
        for prefix in store.list_dir(f"{BACKUP}/").prefixes:
            name = prefix.rstrip("/").rpartition("/")[2]
            if name.isdecimal():
                yield name


def _do(store: Store, action: Action, backup: _Backup) -> bool:
    """Carry out one action; ``False`` when there is nothing to do any more."""
    if action.kind in ("delete", "quarantine"):
        return _delete(store, action.key, backup)
    if action.kind == "delete_outside":
        backup.save(action.key, store.get(action.key))
        return _delete_outside(store, action)
    if action.kind == "leftovers":
        from tessarr.stores.local.store import LocalStore

        return isinstance(store, LocalStore) and store.remove_leftovers(older_than_s=float(action.detail)) > 0
    if action.kind == "consolidate":
        return _consolidate(store, action.key, backup)
    if action.kind == "create_group":
        return _create_group(store, action)
    if action.kind == "end_appends":
        from tessarr.core.array_parts.append_reserved import end_abandoned
        from tessarr.core.open import open_array

        # No backup: restoring an old shape would remove rows that other writers published since.
        return end_abandoned(open_array(store, path=action.key.rpartition("/")[0] or None, mode="r+"))
    if action.kind in ("end_transaction", "end_removal"):
        return _end_transaction(store, action.key, backup)
    old = store.get(action.key)
    if old is None or _repaired(action, old) is None:
        return False
    backup.save(action.key, old)
    # Another writer may have changed the document since: its change stays.
    correct_document(store, action.key, lambda now: _repaired(action, now))
    return True


def _end_transaction(store: Store, key: str, backup: _Backup) -> bool:
    """End a transaction by its record; remove what one without a record has left of a node that it was creating, or what a
    removal has left."""
    from tessarr.core.asynchronous.sans_io import run_steps
    from tessarr.core.claims.intents import CLAIM
    from tessarr.core.claims.left import end_left_steps, remove_abandoned

    if key.endswith(CLAIM):
        return remove_abandoned(store, key, backup.save)
    return run_steps(end_left_steps(store, key))


def _delete(store: Store, key: str, backup: _Backup) -> bool:
    """Remove the value that is kept, and no other one that a writer stored meanwhile."""
    value = store.get(key)
    if value is None:
        return False
    backup.save(key, value)
    store.update(key, lambda now: None if now is None or bytes(now) == bytes(value) else now)
    return True


def _delete_outside(store: Store, action: Action) -> bool:
    """Remove a chunk if it is still outside its array: an append stores chunks there, and then publishes them."""
    from tessarr.core.array_parts.resize import delete_stray_steps
    from tessarr.core.asynchronous.sans_io import run_steps
    from tessarr.core.open import open_array

    return bool(run_steps(delete_stray_steps(open_array(store, path=action.detail or None, mode="r+"), [action.key])))


def _repaired(action: Action, old: Buffer) -> bytes | None:
    """Carry out a "rewrite" or "separator" on a stored document; ``None`` when there is nothing to do any more."""
    name = action.key.rpartition("/")[2]
    repeated: list[Any] = []
    document = formats.loads(name, old, key=action.key, duplicates=repeated)
    new = document
    if action.kind != "rewrite":
        new = _separated(document, action.detail)
    elif action.detail != "DOC-DUPLICATE":
        new = legacy.apply_rule(action.detail, document)
    return None if new is document and not repeated else serialize.dumps({name: new})[name]


def _separated(document: dict[str, Any], separator: str) -> dict[str, Any]:
    if document.get("zarr_format") != 3:
        return {**document, "dimension_separator": separator}
    encoding = document["chunk_key_encoding"]
    name = encoding if isinstance(encoding, str) else encoding["name"]
    return {**document, "chunk_key_encoding": {"name": name, "configuration": {"separator": separator}}}


def _consolidate(store: Store, path: str, backup: _Backup) -> bool:
    from tessarr.core.stored.consolidate import consolidate

    for name in ("zarr.json", ".zmetadata"):
        key = f"{path}/{name}" if path else name
        backup.save(key, store.get(key))
    consolidate(store, path)
    return True


def _create_group(store: Store, action: Action) -> bool:
    number: Any = int(action.detail)
    documents = keyed_documents(action.key, GroupMetadata(zarr_format=number).documents())
    done = all(put_document(store, key, data, overwrite=False) for key, data in documents.items())
    _follow(store, documents)
    return done


def restore(store: StoreLike, backup: str) -> list[str]:
    """Copy back what a repair replaced: the values under the prefix `backup`. Returns their keys."""
    place, _, _ = locate(store, "", "r+")
    backup = backup.rstrip("/") + "/"
    keys = sorted(key[len(backup) :] for key in place.list_prefix(backup))
    documents = {}
    for key in keys:
        value = place.get(backup + key)
        if value is not None and key.rpartition("/")[2] in formats.DOCUMENT_NAMES:
            documents[key] = value
        elif value is not None:
            place.set(key, value)
    replace_documents(place, documents.items())
    _follow(place, keys)
    return keys
