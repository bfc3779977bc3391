"""Remove the objects of a versioned array that no commit needs, so that no commit can lose one.

Objects that nothing refers to are what sessions left that never committed. A session that still goes on may refer to some, and
stores an object that is there already no second time. So they are removed in two steps, by a list at ``refs/gc.json``::

    {"time": "2026-11-23T05:00:00+00:00", "removing": false, "objects": ["<digest>", …]}

1. A collection lists what no commit refers to. A commit that needs a listed object takes it off the list (`keep`).
2. A collection at least the grace later marks the list as ``removing``, if it is still the one that it read before it looked
   for references, removes what is on it, and then the list. A commit that needs such an object fails, and changes nothing.

Each change of the list is a compare-and-swap. Revisions that ``main`` or a tag refers to, and those before them, are never
removed. A commit takes less than the grace from its look at the list to its last step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, cast

from tessarr.common import strict_json
from tessarr.errors import ConflictError
from tessarr.stores.transformed.array_commit import is_digest, is_time
from tessarr.types import Buffer, JSONObject

if TYPE_CHECKING:
    from tessarr.stores.transformed.versioned import VersionedStore

_LIST = "gc"
"""Name of the list, beside ``main``."""


class Collection(NamedTuple):
    """What a collection found, and did."""

    unused: int
    """Objects that nothing refers to."""
    nbytes: int
    """Bytes of these objects."""
    removed: int
    """How many of them were removed."""


class _List(NamedTuple):
    time: datetime
    removing: bool
    objects: frozenset[str]
    value: Buffer
    """As it was read."""


def collect(store: VersionedStore, *, grace: timedelta, dry_run: bool) -> Collection:
    """List the objects that nothing refers to, or remove those that were listed at least `grace` before.

    A `grace` of 0 removes them at once, which is safe where no session goes on. Raises `StoreError`, having removed nothing,
    where a commit cannot be read; `ConflictError` where another collection is at work.
    """
    before = _read(store)
    unused = _stored(store) - set(_needed(store))
    nbytes = sum(store.store.getsize(store.object_key(digest)) or 0 for digest in unused)
    if dry_run or not (unused or before):
        return Collection(len(unused), nbytes, 0)
    now = datetime.now(UTC)
    due = before is not None and (before.removing or now - before.time >= grace)
    if grace and not due:
        if before is None:
            _swap(store, None, _document(now, unused, removing=False))
        return Collection(len(unused), nbytes, 0)
    chosen = unused & before.objects if before is not None and grace else unused
    removing = _document(now, chosen, removing=True)
    _swap(store, None if before is None else before.value, removing)
    store.store.delete_many(sorted(map(store.object_key, chosen)))
    rest = unused - chosen
    _swap(store, removing, _document(now, rest, removing=False) if rest else None)
    return Collection(len(unused), nbytes, len(chosen))


def keep(store: VersionedStore, digests: Iterable[str]) -> None:
    """Take objects that a commit is about to refer to off the list. Raises `ConflictError` where they are being removed."""
    wanted = frozenset(digests)
    while (found := _read(store)) is not None and not wanted.isdisjoint(found.objects):
        if found.removing:
            raise ConflictError(
                "objects that this commit needs are being removed by a collection", store=store.url, key=_key(store),
                hint="Write the chunks again, and repeat; a collection that was killed is completed by the next one",
            )  # fmt: skip
        try:
            _swap(store, found.value, _document(found.time, found.objects - wanted, removing=False))
        except ConflictError:
            continue
        return


def _needed(store: VersionedStore) -> Iterator[str]:
    """List the objects that a commit refers to, and commits themselves."""
    seen: set[str] = set()
    for name in _refs(store):
        identifier: str | None = store.read_ref(name)[0]
        while identifier is not None and identifier not in seen:
            seen.add(identifier)
            commit = store.read_commit(identifier)
            yield identifier
            for page in commit.pages:
                if page not in seen:
                    seen.add(page)
                    yield page
                    yield from store.page(page).values()
            identifier = commit.parent


def _refs(store: VersionedStore) -> list[str]:
    prefix = store.prefix + store.layout.refs
    tags = (key[len(prefix) : -len(".json")] for key in store.store.list(f"{prefix}tags/") if key.endswith(".json"))
    return ["main", *tags]


def _stored(store: VersionedStore) -> set[str]:
    prefix = store.prefix + store.layout.objects
    names = (key.rpartition("/")[2] for key in store.store.list(prefix))
    return {name for name in names if is_digest(name)}


# -- the list --------------------------------------------------------------------------------------------------------------


def _key(store: VersionedStore) -> str:
    return f"{store.prefix}{store.layout.refs}{_LIST}.json"


def _read(store: VersionedStore) -> _List | None:
    value = store.store.get(_key(store))
    if value is None:
        return None
    found = store.parsed(value, _key(store), _MEMBERS)
    time = datetime.fromisoformat(str(found["time"]))
    return _List(time, bool(found["removing"]), frozenset(map(str, cast("list[str]", found["objects"]))), value)


def _document(time: datetime, objects: Iterable[str], *, removing: bool) -> bytes:
    document: JSONObject = {"time": time.isoformat(), "removing": removing, "objects": sorted(objects)}
    return strict_json.dumps(document)


def _swap(store: VersionedStore, old: Buffer | None, new: bytes | None) -> None:
    if not store.replace_ref(_LIST, old, new):
        raise ConflictError("the list of objects to remove was changed", store=store.url, key=_key(store))


_MEMBERS: Mapping[str, Callable[[object], bool]] = {
    "time": is_time,
    "removing": lambda value: isinstance(value, bool),
    "objects": lambda value: isinstance(value, list) and all(map(is_digest, value)),
}
