"""Remove what nothing needs any more: the only function for all that leaves garbage.

| garbage | of | found by |
|---|---|---|
| objects that no version refers to | arrays with ``tessarr.versioned`` | references (`tessarr.stores.transformed.garbage`) |
| hidden temporary files and trees of killed processes | directories | their age; journals are completed first |
| records and claims of transactions that did not end | stores of level *publish* | their age; they are ended, as by a repair |
| rows that were reserved and never published | appends from many machines | their age; they are filled with fill value |
| partial results of stopped conversions, plans and pyramids | any store | names and age (`work.py`, `idle.py`) |
| what an unfinished plan wrote, and its markers | the place of a saved plan | its age (`tessarr.plan.abandoned`) |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from tessarr import registry
from tessarr.core.array import Array
from tessarr.core.array_parts.append_reserved import EXPIRE_S, end_abandoned
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.claims.intents import CLAIM, Record
from tessarr.core.claims.left import end_left_steps, remove_abandoned
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.open import open as open_node
from tessarr.core.open import open_array
from tessarr.errors import NodeNotFoundError
from tessarr.stores.base import Store
from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import List
from tessarr.stores.transformed.garbage import collect
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.branches import commits
from tessarr.tools.check import check_documents
from tessarr.tools.gc.idle import Idle, is_old
from tessarr.tools.gc.work import files_of_work, prefixes_of_work, remove_file
from tessarr.types import JSONObject

GRACE = timedelta(days=7)
"""How long garbage stays, because a process may still be using it."""


@dataclass(slots=True, kw_only=True)
class Garbage:
    """Describe garbage of one kind at one place."""

    kind: str
    """``"objects"``, ``"leftovers"``, ``"transactions"``, ``"appends"``, ``"work"`` or ``"plan"``."""
    path: str
    """The array or group, or what is removed."""
    unused: int
    """How many there are."""
    nbytes: int | None
    """Their bytes, where that is known."""
    removed: int
    """How many of them were removed."""

    def to_json(self) -> JSONObject:
        """Return the fields as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class GarbageReport:
    """Describe what a call of `gc` found and removed."""

    store: str
    dry_run: bool
    items: list[Garbage] = field(default_factory=list)

    def to_json(self) -> JSONObject:
        """Return the report as a JSON object."""
        return {"store": self.store, "dry_run": self.dry_run, "items": [item.to_json() for item in self.items]}


@commits
def gc(
    place: StoreLike,
    *,
    path: str = "",
    dry_run: bool = False,
    grace: timedelta = GRACE,
    storage_options: Mapping[str, object] | None = None,
) -> GarbageReport:
    """Remove garbage at a place and below; with `dry_run` only count it.

    Nothing goes that was changed within the `grace`. In stores that tell no times (all but directories), and of arrays that
    keep versions, the first call lists what is not needed, and a call at least `grace` later removes what still is not: what a
    version, a tag, or a session that goes on refers to stays. A `grace` of 0 removes all at once: safe only while no process
    writes. At the place of a saved plan (``plan.json``) what the plan wrote is removed, if it was not finished; then it can be
    run again.

    Raises `StoreError`, having removed nothing of an array, where one of its versions cannot be read; `ReadOnlyError`.

    >>> import tessarr
    >>> from datetime import timedelta
    >>> store = {}
    >>> z = tessarr.create_array(store, shape=2, dtype="u1", storage_transformers=[{"name": "tessarr.versioned"}])
    >>> z[:] = 1
    >>> z[:] = 2
    >>> _ = z.commit()
    >>> gc(store, grace=timedelta(0)).items[0].removed
    1
    """
    if grace < timedelta(0):
        raise ValueError(f"the grace is a time from 0 on, got {grace}")
    mode = "r" if dry_run else "r+"
    store, here, _ = locate(place, path or None, mode, storage_options)
    report, idle = GarbageReport(store.url, dry_run), Idle(store, here, grace)
    if store.exists(prefix_of(here) + "plan.json"):
        count, removed = registry.higher("tessarr.plan.abandoned")(store, here, idle, dry_run, storage_options)
        report.items.append(_garbage("plan", f"/{here}", count, removed))
    else:
        try:
            node: Array | Group | None = open_node(store, path=here or None, mode=mode)
        except NodeNotFoundError:
            node = None  # what a plan left before its result was there
        report.items += _collect(node, store, here, grace, idle, dry_run)
    if not dry_run:
        idle.record()
    return report


def _garbage(kind: str, path: str, unused: int, removed: int) -> Garbage:
    return Garbage(kind=kind, path=path, unused=unused, nbytes=None, removed=removed)


def _collect(
    node: Array | Group | None, store: Store, path: str, grace: timedelta, idle: Idle, dry_run: bool
) -> Iterator[Garbage]:
    arrays = [] if node is None else list(_arrays(node))
    for array in arrays:
        found = array._find_versioned(array._chunk_store())
        if found is not None:
            unused, nbytes, removed = collect(found, grace=grace, dry_run=dry_run)
            yield Garbage(kind="objects", path=array.name, unused=unused, nbytes=nbytes, removed=removed)
    if node is not None:
        yield from _unfinished(store, path, grace, idle, dry_run)
    groups = [] if not isinstance(node, Group) else [one.path for _, one in node.members(max_depth=None)]
    if isinstance(store, List):
        for prefix in list(prefixes_of_work(store, [path, *groups])):
            removed = int(idle(store, prefix) and not dry_run)
            if removed:
                store.delete_prefix(prefix)
                idle.forget(store, prefix)
            yield _garbage("work", f"/{prefix.rstrip('/')}", 1, removed)
    if isinstance(store, LocalStore):
        for file in list(files_of_work(store, path)):
            removed = int(is_old(file, grace) and not dry_run)
            if removed:
                remove_file(file)
            yield _garbage("work", file, 1, removed)
        count = store.remove_leftovers(older_than_s=grace.total_seconds(), dry_run=dry_run)
        yield _garbage("leftovers", "/", count, 0 if dry_run else count)


def _unfinished(store: Store, path: str, grace: timedelta, idle: Idle, dry_run: bool) -> Iterator[Garbage]:
    """End what transactions and appends left in documents, as a repair does."""
    expire_s = max(EXPIRE_S, grace.total_seconds())
    for finding in check_documents(store, path, None, conventions=False)[0].findings:
        key = finding.key or ""
        if finding.rule in ("TRANSACTION-LEFT", "REMOVAL-LEFT") and key.endswith(CLAIM):
            over = idle(store, key.removesuffix(CLAIM))
            removed = over and not dry_run and remove_abandoned(store, key, lambda *_: None)
            if removed:
                idle.forget(store, key.removesuffix(CLAIM))
            yield _garbage("transactions", f"/{key}", 1, int(removed))
        elif finding.rule == "TRANSACTION-LEFT":
            data = store.get(key)
            over = data is not None and abs(clock.CLOCK.now() - Record.parse(data, key).since) >= expire_s
            yield _garbage(
                "transactions", f"/{key}", 1, int(over and not dry_run and run_steps(end_left_steps(store, key)))
            )
        elif finding.rule in ("APPEND-HOLE", "APPEND-CLOSED"):
            array = open_array(store, path=finding.path or None, mode="r" if dry_run else "r+")
            yield _garbage("appends", array.name, 1, int(not dry_run and end_abandoned(array, expire_s)))


def _arrays(node: Array | Group) -> Iterator[Array]:
    if isinstance(node, Array):
        yield node
        return
    yield from (member for _, member in node.members(max_depth=None) if isinstance(member, Array))
