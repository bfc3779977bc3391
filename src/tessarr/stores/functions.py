"""Functions over the Protocols of `tessarr.stores.protocols`, which work for every store, whatever its abilities.

Each function uses the best ability of the store. The functions work for any object with the methods, a `Store` or not.

>>> class Values:
...     def __init__(self):
...         self.found = {}
...     def get(self, key, byte_range=None):
...         return self.found.get(key)
...     def set(self, key, value):
...         self.found[key] = value
...     def delete(self, key):
...         self.found.pop(key, None)
>>> store = Values()
>>> update(store, "a", lambda old: (old or b"") + b"1")
>>> update(store, "a", lambda old: (old or b"") + b"1")
>>> store.found
{'a': b'11'}
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from tessarr.common.segments import Piece, Stored, StoredBytes, flat, join
from tessarr.errors import ConflictError, UnsupportedOperationError
from tessarr.stores.buffers import byte_view
from tessarr.stores.fetch import UNCHANGED, Fetch, Fetched, Unchanged, Version
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_prefix
from tessarr.stores.protocols import (
    Commit,
    ConditionalDelete,
    ConditionalSet,
    Delete,
    DeleteMany,
    Get,
    GetIfChanged,
    GetRanges,
    List,
    ListDir,
    Listing,
    ListPrefix,
    Lock,
    LockContext,
    PlainFiles,
    Remote,
    Settle,
    Stamp,
    Update,
    Writable,
)
from tessarr.types import Buffer, ByteRange

if TYPE_CHECKING:
    from tessarr.stores.base import Store
    from tessarr.stores.compare_and_swap import Change, Versioned

STAGED = "__tessarr_staged"
"""Name of the prefix under which `replace_prefix` stages new values; names with ``__`` are never nodes."""


_CREATED_IN_BETWEEN = 5
"""How often in succession a value may turn up between two requests, before the store is said to have no versions."""


def url_of(store: object) -> str:
    """Return the URL of a store; for an object without URL, a name for messages and locks."""
    url = getattr(store, "url", None)
    return url if isinstance(url, str) else f"{type(store).__name__.lower()}://{id(store):x}"


def is_in_memory(store: object) -> bool:
    """Whether the values are in the memory of this process, so that a pickle of the store is a copy of them.

    A mapping is taken for one in memory: nothing tells whether its pickle leads to the same values.

    >>> from tessarr.stores.memory.store import MemoryStore
    >>> is_in_memory(MemoryStore())
    True
    """
    return url_of(store).startswith(("memory:", "mapping:", "fsspec+memory:"))


def publishes(store: object) -> bool:
    """Whether transactions of the store are of level *publish*: it replaces one value conditionally, and no two at once.

    >>> from tessarr.stores.memory.store import MemoryStore
    >>> publishes(MemoryStore())
    False
    """
    # In this order: local stores are `Lock` without looking at the file system, and `ConditionalSet` by what they find there.
    return not isinstance(store, Lock | Commit) and isinstance(store, ConditionalSet)


def no_conditional_writes(store: object, key: str) -> UnsupportedOperationError:
    """Return the error for `if_match` where a store is no `ConditionalSet`."""
    return UnsupportedOperationError("this store has no conditional writes", store=url_of(store), key=key)


# -- reading ------------------------------------------------------------------------------------------------------------


def get_ranges(store: Get, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
    """Read several parts of one value, in order; ``None``: no such key. Without `GetRanges`: `ranges_by_get`."""
    if isinstance(store, GetRanges):
        return store.get_ranges(key, ranges)
    return ranges_by_get(store, key, ranges)


def ranges_by_get(store: Get, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
    """Read several parts of one value by `get`.

    One `get` reads the span of all parts, so that they are of one version; from a `Remote` store, where the span may be much
    larger than the parts, one `get` reads each part.
    """
    if len(ranges) > 1 and not isinstance(store, Remote):
        whole = store.get(key)
        if whole is None:
            return None
        view = flat(byte_view(whole))
        return [view[slice(*part.bounds(view.nbytes))].data for part in ranges]
    parts: list[Buffer] = []
    for byte_range in ranges:
        part = store.get(key, byte_range)
        if part is None:
            return None
        parts.append(part)
    return parts


def fetch(store: Get, requests: Sequence[Fetch]) -> list[list[Buffer] | None]:
    """Read several values, or ranges: per request a list of buffers, or ``None``. `Remote` stores: concurrently."""
    calls = [functools.partial(fetch_one, store, request) for request in requests]
    if len(calls) < 2 or not isinstance(store, Remote):
        return [call() for call in calls]
    from tessarr.stores.remote.loop import run_concurrently

    return run_concurrently(calls)


def fetch_one(store: Get, request: Fetch) -> list[Buffer] | None:
    """Read one value, or ranges of one value."""
    if request.ranges is not None:
        return get_ranges(store, request.key, request.ranges)
    value = store.get(request.key)
    return None if value is None else [value]


# -- updating -----------------------------------------------------------------------------------------------------------


def lock(store: object, key: str) -> LockContext:
    """Return the store's lock of `key`; if the store has no locks, one that excludes threads of this process."""
    own: Callable[[str], LockContext] | None = getattr(store, "lock", None)
    return KEYED_LOCKS.hold((url_of(store), key)) if own is None else own(key)


def update(store: Writable, key: str, change: Change) -> None:
    """Read, change and replace one value so that no concurrent update of the value is lost.

    `change` gets the present value (``None``: missing) and returns the new one (``None``: delete). `change` may be called
    several times, so that it must depend on its argument only. Uses the store's `Update`, else compare-and-swap by
    `ConditionalSet` (with retries), else the lock of the store, or of this process.
    """
    if isinstance(store, Update):
        store.update(key, change)
    else:
        update_by_set(store, key, change)


def update_by_set(store: Writable, key: str, change: Change) -> None:
    """Update a value by `get` and `set`: of a store without `Update`, or to implement its `update`."""
    if not isinstance(store, ConditionalSet):
        locked(store, key, change)
        return
    from tessarr.stores.compare_and_swap import compare_and_swap, sleep_blocking

    url = url_of(store)
    # Threads of this process take turns. The loop ends at once (StopIteration), because nothing that it awaits suspends it.
    with KEYED_LOCKS.hold(("swapping", url, key)), suppress(StopIteration):
        compare_and_swap(
            functools.partial(_read_versioned, store, key),
            functools.partial(_swap, store, key),
            change,
            sleep=sleep_blocking,
            store=url,
            key=key,
        ).send(None)


async def _read_versioned(store: Get, key: str) -> Versioned:
    """Read a value of a `ConditionalSet`, and a version that is not newer than the value."""
    assert isinstance(store, ConditionalSet)
    # The version first: if another writer replaces the value in between, the conditional write fails. A value without a version
    # was created in between, or the store has no versions after all, which the caller reports.
    for _ in range(_CREATED_IN_BETWEEN):
        version, value = store.version(key), store.get(key)
        if value is None:
            return None, None
        if version is not None:
            return value, version
    return value, None


def get_if_changed(store: Get, key: str, version: Version | None) -> Fetched | Unchanged | None:
    """Read a value with its version, unless it has that version (`UNCHANGED`); ``None``: no such key.

    Without `GetIfChanged` the version is requested first, where the store has versions; else the value is read each time.
    """
    if isinstance(store, GetIfChanged):
        return store.get_if_changed(key, version)
    now = version_method(store)(key)
    if now is not None and now == version:
        return UNCHANGED
    value = store.get(key)
    return None if value is None else Fetched([value], now)


async def _swap(store: Writable, key: str, version: Version | None, new: Buffer | None) -> None:
    """Replace (``None``: remove) the value if it has that version. Raises `ConflictError` for another version.

    Without `ConditionalDelete` there is a race between the check of the version and the removal.
    """
    assert isinstance(store, ConditionalSet)
    if new is not None:
        store.set_if(key, new, version)
    elif isinstance(store, ConditionalDelete):
        store.delete_if(key, version)
    elif store.version(key) != version:
        raise ConflictError("another writer was faster", store=url_of(store), key=key, expected=version)
    else:
        store.delete(key)


def locked(store: Writable, key: str, change: Change) -> None:
    """Update a value under the lock. Where values have versions, a `set` without the lock is detected, and retried."""
    version = version_method(store)
    with lock(store, key):
        while True:
            before = version(key)
            new = change(store.get(key))
            if version(key) != before:
                continue
            if new is None:
                store.delete(key)
            else:
                store.set(key, new)
            return


def version_method(store: object) -> Callable[[str], Version | None]:
    """Return the method `version` of a store; of a store without versions a function that returns ``None``."""
    version: Callable[[str], Version | None] = getattr(store, "version", _no_version)
    return version


def _no_version(key: str) -> None:
    """Stand in for `version` of a store without versions."""


def spliced(change: Callable[[Stored | None], Sequence[Piece] | None]) -> Change:
    """Turn a change of parts into a change of whole values."""

    def whole(old: Buffer | None) -> Buffer | None:
        stored = None if old is None else StoredBytes(old)
        pieces = change(stored)
        return None if pieces is None else join(pieces, stored)

    return whole


def unspliced(change: Change) -> Callable[[Stored | None], Sequence[Piece] | None]:
    """Turn a change of whole values into a change of parts."""

    def parts(old: Stored | None) -> Sequence[Piece] | None:
        new = change(None if old is None else old.read(ByteRange(0)))
        return None if new is None else [new]

    return parts


def notices_writes(store: object) -> bool:
    """Whether an update detects a concurrent plain `set` or `delete` of its key, so that it is not lost."""
    return isinstance(store, Update | ConditionalSet)


def deletes_safely(store: object) -> bool:
    """Whether an update that removes a value cannot remove the value of a concurrent writer."""
    return isinstance(store, Delete) and (
        isinstance(store, Update | ConditionalDelete) or not isinstance(store, ConditionalSet)
    )


def replace(store: Writable, key: str, value: Buffer | None) -> None:
    """Set (``None``: delete) a whole value, so that no update which began before overwrites it."""
    if notices_writes(store):
        _put(store, key, value)
        return
    with lock(store, key):
        _put(store, key, value)


def _put(store: Writable, key: str, value: Buffer | None) -> None:
    if value is None:
        store.delete(key)
    else:
        store.set(key, value)


def set_if_not_exists(store: Writable, key: str, value: Buffer) -> bool:
    """Write `value` unless `key` has a value. Returns whether `value` was written."""
    if isinstance(store, ConditionalSet):
        try:
            store.set_if(key, value, None)
        except ConflictError:
            return False
        return True
    with lock(store, key):
        if store.get(key, ByteRange(0, 0)) is not None:
            return False
        store.set(key, value)
    return True


def check_versions(url: str, expected: Mapping[str, Version | None], version: Callable[[str], Version | None]) -> None:
    """Raise `ConflictError` with the `keys` whose `version` is not the expected one: the first step of a commit."""
    found = {key: version(key) for key in expected}
    changed = tuple(sorted(key for key in expected if found[key] != expected[key]))
    if changed:
        trouble = ConflictError(
            "another writer changed what the transaction read, and nothing of it was written",
            store=url,
            key=changed[0],
            expected=f"the version {expected[changed[0]]}",
            got=found[changed[0]],
            hint=f"{len(changed)} keys differ (the attribute keys of this error); run the transaction again",
        )
        trouble.keys = changed
        raise trouble


def check_listed(
    url: str,
    listed: Iterable[str],
    list_below: Callable[[str], Iterable[str]],
    changes: Container[str] = (),
    expected: Mapping[str, Version | None] = MappingProxyType({}),
) -> None:
    """Raise `ConflictError` with the `keys` under the prefixes `listed` that are not in `changes`, and have no version in
    `expected`: the second step. A key that is to be missing may be there since the first one.
    """
    keys = {key for prefix in listed for key in list_below(prefix)}
    added = tuple(sorted(key for key in keys if key not in changes and expected.get(key) is None))
    if added:
        trouble = ConflictError(
            "another writer added values below a node that the transaction moves, replaces or removes, and nothing of it was "
            "written",
            store=url,
            key=added[0],
            hint=f"{len(added)} keys are new (the attribute keys of this error); run the transaction again",
        )
        trouble.keys = added
        raise trouble


def check_not_durable(store: object, durable: bool | None) -> None:
    """Raise `UnsupportedOperationError` if a commit must be durable, to a store that cannot be."""
    if durable:
        raise UnsupportedOperationError(
            "this store is not durable: what it holds ends with the process",
            store=url_of(store),
            hint="Leave out durable",
        )


# -- listing and deleting -------------------------------------------------------------------------------------------------


def list_prefix(store: object, prefix: str) -> Iterator[str]:
    """List every key under `prefix`. Raises `KeyValidationError` for a prefix that neither is ``""`` nor ends with ``/``."""
    check_prefix(prefix)
    return iter(store.list_prefix(prefix)) if isinstance(store, ListPrefix) else prefix_by_list(store, prefix)


def prefix_by_list(store: object, prefix: str) -> Iterator[str]:
    """List every key under `prefix` by `List.list`."""
    check_prefix(prefix)
    if not isinstance(store, List):
        raise UnsupportedOperationError("this store cannot list its keys", store=url_of(store))
    keys = store.list(prefix) if prefix and _takes_a_prefix(type(store).list) else store.list()
    return (key for key in keys if key.startswith(prefix))


def _takes_a_prefix(function: Callable[..., object]) -> bool:
    """Whether a method `list` has the parameter `prefix`, which stores written for zarr-python 2 do not have."""
    return len(inspect.signature(function).parameters) > 1


def list_dir(store: object, prefix: str) -> Listing:
    """List the direct children of `prefix`; without `ListDir`, from all keys below `prefix`."""
    if isinstance(store, ListDir):
        return store.list_dir(prefix)
    return children(list_prefix(store, prefix), prefix)


def children(keys_below: Iterable[str], prefix: str) -> Listing:
    """Select the direct children of `prefix` from the keys below `prefix`."""
    keys: set[str] = set()
    prefixes: set[str] = set()
    for key in keys_below:
        name, slash, _ = key[len(prefix) :].partition("/")
        (prefixes if slash else keys).add(prefix + name + slash)
    return Listing(sorted(keys), sorted(prefixes))


def settle_below(store: object, prefix: str) -> None:
    """Complete each unfinished transaction at, above and below `prefix` (`Settle`), before all keys there are read."""
    if not isinstance(store, Settle):
        return
    folders = {key.rpartition("/")[0] for key in list_prefix(store, prefix)}
    every = {folder.rsplit("/", above)[0] for folder in folders for above in range(folder.count("/") + 1)} | {""}
    for folder in sorted(every):
        if f"{folder}/".startswith(prefix) or prefix.startswith(f"{folder}/") or not folder:
            store.settle(folder)


def delete_many(store: Delete, keys: Iterable[str]) -> None:
    """Remove several keys; without `DeleteMany`, one after another."""
    if isinstance(store, DeleteMany):
        store.delete_many(keys)
    else:
        for key in keys:
            store.delete(key)


def replace_prefix(store: Writable, prefix: str, items: Mapping[str, Buffer]) -> None:
    """Replace all values under `prefix` by `items` (full keys → values).

    No old value is removed before every new value is stored: the new values are staged under `STAGED`, then the old keys are
    removed, then the new values are written under their keys.
    """
    staged = {f"{prefix}{STAGED}/{number}": value for number, value in enumerate(items.values())}
    old = list(list_prefix(store, prefix)) if isinstance(store, List) else []
    for key, value in staged.items():
        store.set(key, value)
    delete_many(store, (key for key in old if key not in items))
    for key, value in items.items():
        store.set(key, value)
    delete_many(store, staged)


def stamp_below(store: Store, prefix: str, counts: Callable[[str], bool]) -> str | None:
    """Return a stamp of the values under `prefix` that count; ``None`` where listings do not say whether values changed.

    Those of local directories, of memory, and of stores with the ability `Stamp` do, and of wrappers around these that keep
    their values apart by key. The stamp of files has their sizes and times of change, which all machines see alike.
    """
    from tessarr.common.stamps import StampSum  # here, since few programs need it

    if isinstance(store, Stamp):
        return store.stamp(prefix, counts)
    if not isinstance(store, PlainFiles) and not is_in_memory(store):
        return store._stamp_below(prefix, counts)
    total, directory = StampSum(), store.directory if isinstance(store, PlainFiles) else None
    for key in filter(counts, store.list_prefix(prefix)):
        found = store.version(key) if directory is None else _state_of(directory + key)
        if found is None and directory is None:  # a mapping whose values have no versions
            return None
        total.add(key, found)
    return total.hexdigest()


def _state_of(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:  # deleted while keys were listed
        return None
    return found.st_size, found.st_mtime_ns
