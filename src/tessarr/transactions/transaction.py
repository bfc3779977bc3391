"""Change several arrays and groups at once, or not at all.

>>> import numpy as np, tempfile, tessarr
>>> place = tempfile.mkdtemp()
>>> root = tessarr.create_group(place)
>>> for name in ("t", "u"):
...     _ = root.create_array(name, shape=(4,), chunks=(2,), dtype="i4")
>>> with tessarr.transaction(place) as tx:
...     tx.group["t"][:] = 1
...     tx.group["u"][:] = 2
...     before = root["u"][:].tolist()
>>> before, root["u"][:].tolist()
([0, 0, 0, 0], [2, 2, 2, 2])

ARCHITECTURE.md, "Transactions", says how; ``docs/transactions.md``, what is promised where.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, NamedTuple, Self, TypeAlias

from tessarr.common.json_merge import both_changed, merged
from tessarr.common.warn import warn
from tessarr.core import open_transactions
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, run_steps, run_steps_async
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.node import Node
from tessarr.core.open import open as open_node
from tessarr.core.stored import read_nodes
from tessarr.core.stored.consolidate import consolidate_again
from tessarr.core.stored.shape_locks import MOST, in_order_of_locks, shape_key, shape_lock
from tessarr.core.stored.walk import walk
from tessarr.errors import ConflictError, TransactionError
from tessarr.stores.base import Store, Version
from tessarr.stores.functions import check_versions
from tessarr.stores.local.store import LocalStore
from tessarr.stores.local.transactions.stage import StagedValue
from tessarr.stores.path import StorePath
from tessarr.stores.protocols import Commit as CanCommit
from tessarr.stores.url import StoreLike
from tessarr.transactions.document_merge import (
    is_consolidated,
    is_document,
    makes_node,
    newly_consolidated,
    removed,
    resized,
    with_copies,
)
from tessarr.transactions.growth import SortedChanges, is_published
from tessarr.transactions.modes import PLAIN_READERS, Level, Mode, Plan, check_mode, level_of
from tessarr.transactions.overlay import OverlayStore

OnConflict: TypeAlias = Literal["error", "merge"]
_MERGES = 20
"""How often documents are merged, while other writers change them again."""


class Commit(NamedTuple):
    """What a transaction has changed."""

    level: Level
    keys: tuple[str, ...]
    """The keys that were set or removed, in order."""
    nbytes: int
    """The bytes of the new values."""


class Transaction:
    """Changes of one store that are all made or none. Made by `tessarr.transaction`; a context manager, used once, by ``with``
    or ``async with``.

    Only the process that began it may use it; its threads may share it.
    """

    def __init__(
        self,
        place: StoreLike,
        mode: Mode = "auto",
        *,
        durable: bool | None = None,
        on_conflict: OnConflict = "error",
        storage_options: Mapping[str, object] | None = None,
    ) -> None:
        check_mode(mode)
        if on_conflict not in ("error", "merge"):
            raise ValueError(f"on_conflict must be 'error' or 'merge', not {on_conflict!r}")
        self._place, self._durable, self._on_conflict = place, durable, on_conflict
        self._mode: Mode = mode
        self._options = storage_options
        self._state: Literal["new", "open", "ended"] = "new"
        self._process = os.getpid()

    # -- beginning and ending ------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Begin. Raises `TransactionError` if one is open at the place, `UnsupportedOperationError` where none is offered."""
        self._require_new()
        try:
            self._begin()
            run_steps(self._settle_steps())
        except BaseException:
            self._give_up()
            raise
        return self

    async def __aenter__(self) -> Self:
        """Begin, as ``with`` does."""
        self._require_new()
        try:
            self._begin()
            await run_steps_async(self._settle_steps())
        except BaseException:
            self._give_up()
            raise
        return self

    def _require_new(self) -> None:
        if self._state != "new":
            raise TransactionError("a transaction is used once", hint="Begin another one by tessarr.transaction")

    def _begin(self) -> None:
        store, self._path, _ = locate(self._place, None, "a", self._options)
        store._check_writable(self._path)
        self._owns = not isinstance(getattr(self._place, "_node", self._place), Store | StorePath | Node)
        self._level: Level = level_of(store, self._mode)
        begin_stage = store.stage if self._level != "swap" and isinstance(store, LocalStore) else None
        self._store, self._process = store, os.getpid()
        self._overlay = OverlayStore(store, self._require_open, begin_stage)
        open_transactions.enter(store, self._overlay)
        self._state = "open"

    def _give_up(self) -> None:
        """End a transaction that an error or an interruption came into, however far it has begun or ended."""
        if self._process == os.getpid() and hasattr(self, "_overlay"):
            open_transactions.leave(self._overlay)
            if self._state != "ended":
                self._end()

    async def _settle_steps(self) -> None:
        """Complete a transaction of a process that ended."""
        await read_nodes.read_nodes_steps(self._store, [self._path])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Commit; after an exception, change nothing, and in a forked process leave the transaction to its own."""
        try:
            if self._state == "ended" or self._leaves_it(kind):
                return
            if kind is None:
                self.commit()
            else:
                self.abort()
        except BaseException:
            self._give_up()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Commit in a thread; after an exception, change nothing, as ``with`` does."""
        if self._state == "ended" or self._leaves_it(kind):
            return
        if kind is None:
            await self.commit_async()
        else:
            self.abort()

    def _leaves_it(self, kind: type[BaseException] | None) -> bool:
        """Whether an exception, `SystemExit` for one, leaves the block in a forked process."""
        return kind is not None and self._process != os.getpid()

    def __del__(self) -> None:
        """Release a place whose transaction was neither committed nor aborted, and change nothing."""
        if getattr(self, "_state", "new") != "open" or self._process != os.getpid() or sys.is_finalizing():
            return
        self._owns = False  # the store ends by itself: closing it may wait
        self._end()
        warn(f"a transaction of {self._store.url} was dropped before its end, and nothing was changed", ResourceWarning)

    def commit(self) -> Commit:
        """Make the changes, and end the transaction.

        Raises `ConflictError` with the `keys` that other writers changed: nothing is changed then. `PendingCommitError`: the
        changes are committed, and become visible later. `UnsupportedOperationError` for changes that the place
        cannot make at once.
        """
        self._require_open()
        try:
            return self._commit()
        finally:
            self._end()

    commit_async = async_variant(commit)

    def abort(self) -> None:
        """End the transaction, and change nothing."""
        self._require_open()
        self._end()

    abort_async = async_variant(abort)

    def _end(self) -> None:
        self._state = "ended"
        open_transactions.leave(self._overlay)
        if self._process == os.getpid():
            self._overlay.discard()
        if self._owns and self._process == os.getpid():
            self._store.close()

    def _require_open(self) -> None:
        if self._process != os.getpid():
            raise TransactionError(
                "this transaction belongs to the process that began it",
                store=self._store.url,
                hint="Begin a transaction in the forked process",
            )
        if self._state != "open":
            raise TransactionError(
                "the transaction is not open",
                hint="Enter it by `with`"
                if self._state == "new"
                else "It has ended; its objects cannot be used any more",
            )

    # -- what it changes -------------------------------------------------------------------------------------------------

    @property
    def group(self) -> Group:
        """The group at the place; a new one where nothing is. What is changed through it is part of the transaction."""
        node = self._node()
        if not isinstance(node, Group):
            raise TransactionError("there is an array at the place", path=node.name, hint="Use `tx.array`")
        return node

    @property
    def array(self) -> Array:
        """The array at the place. What is changed through it is part of the transaction."""
        node = self._node()
        if not isinstance(node, Array):
            raise TransactionError("there is a group at the place", path=node.name, hint="Use `tx.group[name]`")
        return node

    def _node(self) -> Array | Group:
        self._require_open()
        # Consolidated metadata may still have a node that another client has just deleted: its own document is compared.
        return open_node(self._overlay, mode="a", path=self._path, use_consolidated=False)

    def plan(self) -> Plan:
        """Describe what a commit would do now: keys, bytes, level, and what plain readers will see."""
        self._require_open()
        changes = self._changes()
        before = self._old_documents(changes)
        level = self._level_of(changes, before)
        return Plan(
            level,
            set=tuple(key for key, value in changes.items() if value is not None),
            removed=tuple(key for key, value in changes.items() if value is None),
            nbytes=sum(len(value) for value in changes.values() if value is not None),
            links=sum(key not in changes for key in self._store.list()) if level == "swap" else 0,
            requests=self._count_requests(changes, before),
            durable=True if level == "swap" else self._durable,
            plain_readers=PLAIN_READERS[level],
        )

    plan_async = async_variant(plan)

    def _count_requests(
        self, changes: Mapping[str, bytes | StagedValue | None], before: Mapping[str, bytes]
    ) -> int | None:
        if isinstance(self._store, CanCommit):
            return None
        from tessarr.transactions.publication import count_requests

        return count_requests(changes, before)

    # -- committing ------------------------------------------------------------------------------------------------------

    def _changes(self) -> dict[str, bytes | StagedValue | None]:
        """Return the changes in the order in which they become visible: data before documents, the root's document last."""
        changes = self._overlay.changes()
        documents = {key: (-key.count("/"), key) for key in changes if is_document(key)}
        values = sorted([key for key in changes if key not in documents])  # as they were staged, most are in order
        order = [key for key in values if changes[key] is not None]
        order += sorted(documents, key=documents.__getitem__)  # from the leaves up
        order += [key for key in values if changes[key] is None]
        return {key: changes[key] for key in order}

    def _commit(self) -> Commit:
        changes, expected = self._changes(), dict(self._overlay.seen)
        before = self._old_documents(changes)
        level = self._level_of(changes, before)
        if level == "publish" and isinstance(self._store, CanCommit):
            if self._mode == "publish":  # else they were looked at when the level was chosen
                SortedChanges(self._store, self._overlay, changes, before, expected).check()
            # What was left beyond the shape is removed before it is within.
            changes = dict(sorted(changes.items(), key=lambda item: item[1] is not None))
        with ExitStack() as held:
            arrays = self._arrays_to_lock(changes, before) if changes else []
            for path in arrays:
                held.enter_context(shape_lock(self._store, path))
            for attempt in range(_MERGES):
                try:
                    self._commit_once(changes, expected, before, arrays)
                    break
                except ConflictError as conflict:
                    if self._on_conflict == "error" or not conflict.keys or attempt == _MERGES - 1:
                        raise
                    self._merge(conflict, changes, expected, before)
        open_transactions.leave(self._overlay)
        consolidate_again(self._store, newly_consolidated(changes, before))
        nbytes = sum(len(value) for value in changes.values() if value is not None)
        return Commit(level, tuple(changes), nbytes)

    def _level_of(self, changes: Mapping[str, bytes | StagedValue | None], before: Mapping[str, bytes]) -> Level:
        """Return the level of a commit of `changes`: in a directory that of what readers without tessarr may see."""
        if self._level != "journal" or self._mode != "auto" or not changes:
            return self._level
        return "publish" if is_published(self._store, self._overlay, changes, before) else "journal"

    def _arrays_to_lock(
        self, changes: Mapping[str, bytes | StagedValue | None], before: Mapping[str, bytes]
    ) -> list[str]:
        """List the arrays whose shapes change, and those that are removed, as far as these are few; for a swap all nodes.

        An append that is storing rows beyond the old shape would overwrite those of a committed append, or leave them where
        no array is.
        """
        if not isinstance(self._store, CanCommit):
            return []
        documents = {key: value for key, value in changes.items() if value is None or isinstance(value, bytes)}
        paths = resized(documents, before)
        gone = removed(documents)
        groups: set[str] = set()
        if self._level == "swap" and isinstance(self._store, LocalStore):
            # It waits for every lock, and appends in quick succession would leave it no moment. Another transaction that
            # removes a group holds the lock of its path, and would wait for those of the arrays there.
            nodes = {entry.path: entry.kind for entry in walk(self._store)}
            gone |= nodes.keys()
            groups = {path for path in gone if nodes.get(path) == "group"}
        return in_order_of_locks(self._store, paths | gone if len(gone - groups) <= MOST else paths)

    def _commit_once(
        self,
        changes: Mapping[str, bytes | StagedValue | None],
        expected: Mapping[str, Version | None],
        before: Mapping[str, bytes],
        locked: Sequence[str],
    ) -> None:
        listed = sorted(self._overlay.listed)
        if not changes:
            check_versions(self._store.url, expected, self._store.version)
        elif not isinstance(self._store, CanCommit):
            from tessarr.transactions.publication import Publication

            Publication(self._store, self._path, self._overlay).commit(_in_memory(changes), expected, before)
        elif self._level == "swap":
            assert isinstance(self._store, LocalStore)
            self._store.swap(_in_memory(changes), expected, [*map(shape_key, locked)], listed)
        elif self._overlay.stage is not None and isinstance(self._store, LocalStore):
            stage = self._overlay.stage
            self._store.commit_staged(changes, expected, stage, listed=listed, durable=self._durable)
        else:
            self._store.commit(_in_memory(changes), expected, listed=listed, durable=self._durable)

    def _old_documents(self, changes: Iterable[str]) -> dict[str, bytes]:
        """Return the documents that change, as they were read; large ones are read again."""
        found = dict(self._overlay.documents)
        for key in changes if self._mode in ("auto", "publish") else ():
            version = self._overlay.seen.get(key)
            if version is not None and key not in found and is_document(key):
                value = self._store.get(key)
                check_versions(self._store.url, {key: version}, self._store.version)
                assert value is not None
                found[key] = bytes(value)
        return found

    def _merge(
        self,
        conflict: ConflictError,
        changes: dict[str, bytes | StagedValue | None],
        expected: dict[str, Version | None],
        before: dict[str, bytes],
    ) -> None:
        """Merge documents that other writers changed; raise `conflict` for other values, and members that both changed."""
        found: dict[str, bytes] = {}
        for key in conflict.keys:
            if not is_document(key) or (key not in expected and key not in changes):
                raise conflict  # of a value, or of one that is new where everything was listed
            version, value = self._store.version(key), self._store.get(key)
            if self._store.version(key) != version:
                continue  # it is found changed again
            base = before.get(key)
            if is_consolidated(key, value) and not is_consolidated(key, base):
                raise conflict  # the new consolidated metadata lack what this transaction changes
            if key not in changes and makes_node(key) and (version is None) != (expected[key] is None):
                raise conflict  # by a migration, for one: the documents that this transaction changes describe no node any more
            if key in changes:
                own = changes[key]
                assert not isinstance(own, StagedValue)  # a document
                new = merged(base, own, value)
                if new is None or both_changed(base, own, value, "shape"):
                    raise conflict
                changes[key] = found[key] = new
            if value is not None:
                before[key] = bytes(value)
            expected[key] = version
        for (
            key,
            document,
        ) in changes.items():  # consolidated metadata may have been read when the others were changed already
            if isinstance(document, bytes) and is_document(key):
                changes[key] = with_copies(key, document, found)


def _in_memory(changes: Mapping[str, bytes | StagedValue | None]) -> dict[str, bytes | None]:
    """Return changes none of which is in a staged file, as the store has no such files."""
    found = {key: value for key, value in changes.items() if not isinstance(value, StagedValue)}
    assert len(found) == len(changes)
    return found


def transaction(
    place: StoreLike,
    mode: Mode = "auto",
    *,
    durable: bool | None = None,
    on_conflict: OnConflict = "error",
    storage_options: Mapping[str, object] | None = None,
) -> Transaction:
    """Begin a transaction: changes of the arrays and groups of one store, all of which are made when the block ends, or none.

    `place` is a path, a URL, a store, or an array or group. `durable`: the commit is on the disk when it returns; ``None``:
    as the store is set. `on_conflict`: what to do if other writers changed what the transaction has read: ``"error"`` raises
    `ConflictError`; ``"merge"`` merges the documents member by member, and raises only where both changed one.

    Raises `UnsupportedOperationError` where the store cannot commit; `TransactionError` for a transaction within one.

    >>> import tessarr
    >>> store = tessarr.storage.MemoryStore()
    >>> with tessarr.transaction(store) as tx:
    ...     tx.group.create_array("a", data=[1, 2, 3])
    ...     tx.group.attrs["title"] = "both or neither"
    <Array ...>
    >>> tessarr.open_group(store, mode="r")["a"][:].tolist()
    [1, 2, 3]
    """
    return Transaction(place, mode, durable=durable, on_conflict=on_conflict, storage_options=storage_options)
