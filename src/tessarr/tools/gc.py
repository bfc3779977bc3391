"""Remove what nothing needs any more: the only function for all that leaves garbage.

| garbage | of | found by |
|---|---|---|
| objects that no version refers to | arrays with ``tessarr.versioned`` | references (`tessarr.stores.transformed.garbage`) |
| hidden temporary files and trees of killed processes | directories | their age (`LocalStore.remove_leftovers`) |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.open import open as open_node
from tessarr.stores.local.store import LocalStore
from tessarr.stores.transformed.garbage import collect
from tessarr.stores.url import StoreLike
from tessarr.types import JSONObject

GRACE = timedelta(days=7)
"""How long garbage stays, because a process may still be using it."""


@dataclass(slots=True, kw_only=True)
class Garbage:
    """Describe garbage of one kind at one place."""

    kind: str
    """``"objects"`` or ``"leftovers"``."""
    path: str
    """The array or group."""
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


def gc(
    place: StoreLike,
    *,
    path: str = "",
    dry_run: bool = False,
    grace: timedelta = GRACE,
    storage_options: Mapping[str, object] | None = None,
) -> GarbageReport:
    """Remove garbage at a place and below; with `dry_run` only count it.

    Of an array that keeps versions the first call lists the objects that no version refers to, and a call at least `grace`
    later removes those that are still not needed: what a version, a tag, or a session that goes on refers to stays. Temporary
    files are removed when they are older than `grace`. A `grace` of 0 removes all at once: safe only while no process writes.

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
    node = open_node(place, path=path, mode="r" if dry_run else "r+", storage_options=storage_options)
    report = GarbageReport(node._store.url, dry_run)
    for array in _arrays(node):
        found = array._find_versioned(array._chunk_store())
        if found is not None:
            unused, nbytes, removed = collect(found, grace=grace, dry_run=dry_run)
            report.items.append(Garbage(kind="objects", path=array.name, unused=unused, nbytes=nbytes, removed=removed))
    if isinstance(node._store, LocalStore):
        count = node._store.remove_leftovers(older_than_s=grace.total_seconds(), dry_run=dry_run)
        report.items.append(
            Garbage(kind="leftovers", path="/", unused=count, nbytes=None, removed=0 if dry_run else count)
        )
    return report


def _arrays(node: Array | Group) -> Iterator[Array]:
    if isinstance(node, Array):
        yield node
        return
    yield from (member for _, member in node.members(max_depth=None) if isinstance(member, Array))
