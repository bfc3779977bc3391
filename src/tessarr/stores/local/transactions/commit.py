"""Commit several changes of local files at once or not at all.

`commit` stages values beside their keys (some are staged already: `stage`, beside this module), leaves a mark in the
directory of each node whose values it changes or has read, waits for the holders of the keys' lock files, compares versions,
renames the journal into place, which is the commit point, carries its steps out, and removes it. On a file system that may be a
network one, marks are in the lock file of each key. `recovery`, beside this module, completes what a process that ended has
begun. ARCHITECTURE.md, "Transactions", has the reasons.

Roots may be nested (``data.zarr`` and ``data.zarr/t``). Each root has a lock of transactions; marks are made in the order of
their paths, so that two transactions of different roots wait for each other in one direction only.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from typing import TypeAlias

from tessarr.errors import ConflictError, DurabilityError, PendingCommitError, UnsupportedOperationError
from tessarr.stores.base import Version
from tessarr.stores.buffers import as_bytes
from tessarr.stores.functions import check_listed, check_versions
from tessarr.stores.local import file as localfile
from tessarr.stores.local import lock as filelock
from tessarr.stores.local.file import ABSENT, version_of
from tessarr.stores.local.lock import JOURNAL
from tessarr.stores.local.sync import BatchSync, make_directories, sync_directory
from tessarr.stores.local.transactions.journal import (
    Journal,
    dump_pointer,
    is_document,
    parse_pointer,
)
from tessarr.stores.local.transactions.keep import changed_at, keep_names, living_above
from tessarr.stores.local.transactions.many import ComparedSteps, StagedFiles
from tessarr.stores.local.transactions.nodes import documents_of, list_nodes, nodes_of, parent
from tessarr.stores.local.transactions.recovery import (
    LOCKED,
    MARKS,
    Checked,
    check_inside,
    clear_known,
    finish,
    folders_above,
    mark_in,
    opened,
    path_of,
    read_small,
    root_above,
    settle_mark,
    settled,
    staged_path,
    unlink,
)
from tessarr.stores.local.transactions.root import identity
from tessarr.stores.local.transactions.stage import Stage, StagedValue
from tessarr.stores.local.tree import walk
from tessarr.stores.locks import holding
from tessarr.types import Buffer

Changes: TypeAlias = Mapping[str, Buffer | StagedValue | None]
"""Key → new value; ``None``: remove."""
_LARGE_NBYTES = 64 << 20
"""So many bytes are synced before other writers have to wait."""


def commit(
    base: str,
    url: str,
    changes: Changes,
    expected: Mapping[str, Version | None],
    *,
    listed: Iterable[str] = (),
    durable: bool,
    stage: Stage | None = None,
) -> str:
    """Make `changes` in this order, all or none, if keys have the versions `expected`.

    `listed`: prefixes under which there is no key, but those in `changes` and `expected`. `stage`: where the values are that
    are staged already. Returns the id of the transaction. Raises `ConflictError` with the `keys` that have other versions, or
    are new, having changed nothing; `PendingCommitError` and `DurabilityError` after the commit point; `OSError` before.
    """
    make_directories(base, base, durable=durable)
    change = _Change(base, url, stage or Stage(base), durable)
    keys, documents, kept = sorted(changes), documents_of(changes, expected), _kept(changes, expected)
    try:
        nodes = list_nodes(base, keys, documents)
        change.keep(nodes, [*changes, *change.stage.keys], kept)
        change.write(changes, nodes)
        with settled(base, durable=durable):
            change.nodes = list_nodes(base, keys, documents)
            change.keep(change.nodes, changes, kept)
            change.mark(expected, kept)
            change.check_listed(listed, changes, expected)
            change.write_pointers()
            change.publish()
    except BaseException as error:
        if not change.committed:
            change.undo()
            if isinstance(error, NotADirectoryError):
                check_ancestors(base, url, changes)
        raise
    return change.id


def check_ancestors(base: str, url: str, changes: Changes) -> None:
    """Raise `UnsupportedOperationError` where a value is set below one that is there: it cannot be staged beside its key."""
    for key in (key for key, value in changes.items() if value is not None):
        above = parent(key)
        while above:
            if os.path.isfile(path_of(base, above)):
                raise UnsupportedOperationError(
                    "a transaction of a directory cannot make a directory where a value is",
                    store=url,
                    key=above,
                    got=f"a value for {key!r}",
                    hint="Delete the value in a transaction before, or use mode='swap'",
                )
            above = parent(above)


class Marks:
    """The marks that the transaction `identifier` of the directory `base` leaves in lock files."""

    def __init__(self, base: str, identifier: str, *, durable: bool) -> None:
        self.base, self.id, self.durable = base, identifier, durable
        self.locks: list[str] = []
        """The lock files that have a mark."""

    def leave(self, locks: Iterable[str]) -> None:
        """Leave a mark in lock files, in the order of their paths."""
        for lock in sorted(locks):
            self.locks.append(lock)
            self._leave_in(lock)

    def _leave_in(self, lock: str) -> None:
        folder = os.path.dirname(lock)

        def take() -> int:
            return opened(folder, self.base, lambda: filelock.acquire(lock), durable=self.durable)

        with self._acquired(lock, take) as note:
            if os.fstat(note.descriptor).st_size:
                os.ftruncate(note.descriptor, 0)
            localfile.write(note.descriptor, dump_pointer(self.id, depth(self.base, folder)))
            note.is_marked = True

    def wait_for(self, lock: str, *, wait: bool = True) -> None:
        """Wait until the process that holds a lock file has released it. Later ones find the mark of the node.

        Raises `BlockingIOError` when not `wait` and a process holds it.
        """
        with (
            contextlib.suppress(*ABSENT),
            self._acquired(lock, lambda: filelock.acquire(lock, wait=wait, flags=LOCKED)),
        ):
            pass

    @holding
    def _acquired(self, lock: str, take: Callable[[], int]) -> Generator[filelock.Note, None, None]:
        """Hold a lock file that has no mark of another root."""
        while True:
            with filelock.held(lock, take) as note:
                left = mark_in(note)
                pointer = parse_pointer(left)
                # A mark of this root is of a process that ended before its commit point.
                if pointer is None or root_above(os.path.dirname(lock), pointer[1]) == self.base:
                    note.is_marked = False
                    yield note
                    return
            settle_mark(lock, left, durable=self.durable)


class _Change:
    """One commit."""

    def __init__(self, base: str, url: str, stage: Stage, durable: bool) -> None:
        self.base, self.url, self.stage, self.durable = base, url, stage, durable
        self.batch: BatchSync = stage.batch
        self.id = stage.files.id
        self.committed = False
        self.staged: dict[str, str | None] = {}
        """Key → version of the staged file; ``None``: the key is removed."""
        self.nodes: list[str] = []
        """The directories of nodes between the root and the keys that are changed, without the root."""
        self.marks = Marks(base, self.id, durable=durable)
        self.pointers: dict[str, str] = {}
        """The pointers to the journal → where they are staged."""
        self.checked: Checked | None = None

    def keep(self, nodes: Iterable[str], keys: Iterable[str], kept: Iterable[str]) -> None:
        """Keep the names in the directories of `keys`, and of documents that are `kept`, where a mark is left too, for the
        snapshots of the nodes."""
        snapshots = living_above(self._folders(["", *nodes, *map(parent, kept)]))
        if snapshots:
            folders = {self.base, *(os.path.dirname(path_of(self.base, key)) for key in (*keys, *kept))}
            keep_names(snapshots, sorted(folders))

    def write(self, changes: Changes, nodes: Iterable[str]) -> None:
        """Write the values beside their keys, and pointers for nodes. With `durable`, sync many bytes: the rest comes later."""
        self.staged = {key: value.version if isinstance(value, StagedValue) else None for key, value in changes.items()}
        rest = {key: value for key, value in changes.items() if not isinstance(value, StagedValue)}
        self.stage.remove(self.stage.keys - (self.staged.keys() - rest.keys()))
        values = [(key, as_bytes(value)) for key, value in rest.items() if value is not None]
        versions = self.stage.files.write(values) if self.stage.files.checks_links else None
        self._check_links(changes if versions is None else (key for key, value in rest.items() if value is None))
        versions = versions or self.stage.files.write(values) or [self._write_one(*value) for value in values]
        self.staged.update(zip((key for key, _ in values), versions, strict=True))
        for folder in self._folders(nodes):
            self._stage_pointer(folder)
        if self.durable and sum(len(value) for value in changes.values() if value is not None) >= _LARGE_NBYTES:
            self._sync([])

    def _sync(self, files: list[str]) -> None:
        """Sync the staged values, `files`, and the directories of all."""
        paths = [self.stage.files.path(key) for key, version in self.staged.items() if version is not None] + files
        self.batch.sync(paths, folders_above(self.base, paths))

    def _stage_pointer(self, folder: str) -> None:
        pointer = os.path.join(folder, JOURNAL)
        temporary = staged_path(pointer, self.id)
        descriptor = _create(temporary, self.base, durable=self.durable)
        self.pointers[pointer] = temporary
        try:
            localfile.write(descriptor, dump_pointer(self.id, depth(self.base, folder)))
        finally:
            os.close(descriptor)

    def _check_links(self, keys: Iterable[str]) -> None:
        checked: set[str] = set()
        for key in dict.fromkeys(map(parent, keys)):
            check_inside(self.base, path_of(self.base, key) if key else self.base, checked)

    def _write_one(self, key: str, value: bytes) -> str:
        path = self.stage.files.path(key)
        descriptor = _create(path, self.base, durable=self.durable)
        localfile.write_value(descriptor, [value], durable=False)
        return version_of(os.stat(path)).partition(":")[2]

    def mark(self, expected: Mapping[str, Version | None], kept: Sequence[str]) -> None:
        """Leave the marks, those of documents that are `kept` too, and compare the versions. Raises `ConflictError`."""
        tops = [os.path.join(folder, filelock.lock_name(JOURNAL)) for folder in self._folders(["", *self.nodes])]
        own = [*self.staged, *kept]
        if self.batch.kind is None:
            self.marks.leave([*map(self._lock, own), *tops])
            locks = 0
        else:
            marks = nodes_of(own, {"", *self.nodes, *map(parent, kept)})
            self.marks.leave([*tops, *(os.path.join(folder, filelock.NODE_MARK) for folder in self._folders(marks))])
            locks = len(own)
        keys = [*dict.fromkeys([*own, *expected])]
        # Opened again: since values were staged, another directory may have come in the place of the root.
        files = StagedFiles(self.base, self.id)
        pairs = [(key, self.staged.get(key)) for key in keys]
        compared = files.compare(pairs, locks)
        if compared.locked:
            for key in sorted(compared.locked):
                self.marks.wait_for(self._lock(key))
            compared = files.compare(pairs, 0)
        numbers = {key: number for number, key in enumerate(keys) if key in expected}
        check_versions(self.url, expected, lambda key: compared.version(numbers[key]))
        self._check_staged(compared.changed)
        self._check_directories(key for number, key in enumerate(self.staged) if compared.version(number) is None)
        self.checked = Checked(files, ComparedSteps(self.staged, compared))  # `keys` begins with those that are staged

    def check_listed(
        self, listed: Iterable[str], changes: Container[str], expected: Mapping[str, Version | None]
    ) -> None:
        """Raise `ConflictError` for keys under `listed` that are neither changed nor expected.

        Waits for who is writing one now. Who comes later finds the marks, or replaces a value without a lock, and so after
        the transaction.
        """
        listed, own = [*listed], {*self.marks.locks}
        for prefix in listed:
            for lock in locks_below(path_of(self.base, prefix)):
                if lock not in own:
                    self.marks.wait_for(lock)
        check_listed(self.url, listed, functools.partial(walk, self.base), changes, expected)

    def _check_directories(self, missing: Iterable[str]) -> None:
        """Raise `UnsupportedOperationError` where a new value would replace a directory with values that stay."""
        for key in missing:
            if self.staged.get(key) is None or not os.path.isdir(path_of(self.base, key)):
                continue
            left = next((one for one in walk(self.base, f"{key}/") if self.staged.get(one, "") is not None), None)
            if left is not None:
                raise UnsupportedOperationError(
                    "a value cannot be stored where a directory with other values is",
                    store=self.url,
                    key=key,
                    got=f"a value at {left!r}",
                    hint="Delete these values in the same transaction",
                )

    def _check_staged(self, changed: Sequence[str]) -> None:
        """Raise `ConflictError` if staged files are gone: their directory was replaced, or leftovers were removed."""
        if changed:
            trouble = ConflictError(
                "values that the transaction had staged were removed before it was committed",
                store=self.url,
                key=changed[0],
                got=f"{len(changed)} missing or changed files",
                hint="Run the transaction again",
            )
            trouble.keys = tuple(changed)
            raise trouble

    def write_pointers(self) -> None:
        """Rename the pointers into place; nodes may have come and gone since they were staged."""
        pointers = [os.path.join(folder, JOURNAL) for folder in self._folders(self.nodes)]
        for pointer in self.pointers.keys() - {*pointers}:
            unlink(self.pointers.pop(pointer))
        for pointer in pointers:
            if pointer not in self.pointers:
                self._stage_pointer(os.path.dirname(pointer))
        if self.durable:  # a power cut must leave no name that leads to a part of a pointer
            self.batch.sync([self.pointers[pointer] for pointer in pointers], [])
        for pointer in pointers:
            os.replace(self.pointers[pointer], pointer)

    def publish(self) -> None:
        """Rename the journal into place, the commit point; carry the steps out; remove the journal."""
        assert self.checked is not None
        watched, steps = self._folders(["", *self.nodes]), self.checked.steps
        if living_above(watched):  # the links by which files are kept will change them
            changed = [step._replace(changed=changed_at(path_of(self.base, step.key))) for step in steps]
            journal = Journal(self.id, identity(self.base), changed)
        else:
            journal = Journal(self.id, identity(self.base), steps, steps.lines())
        target = self.base + JOURNAL
        temporary = staged_path(target, self.id)
        descriptor = os.open(temporary, localfile.CREATE, 0o666)
        localfile.write_value(descriptor, [journal.dump()], durable=False)
        if self.durable:
            self._sync([*self.pointers, temporary])
        try:
            os.replace(temporary, target)
        except OSError:  # a network file system may report a failure of a rename that it made
            self.committed = read_small(target) == journal.dump()
            if not self.committed:
                raise
        self.committed = self.stage.committed = True
        try:
            if self.durable:
                sync_directory(self.base)
            finish(self.base, journal, watched, self.batch if self.durable else None, self.checked)
            self._clear(key for key, version in self.staged.items() if version is None)
        except DurabilityError:
            raise
        except OSError as error:
            raise pending_commit("could not be carried out to the end", error) from error

    def undo(self) -> None:
        """Remove what was staged, before the commit point."""
        for key in self.staged.keys() - self.stage.keys:
            unlink(self.stage.files.path(key))
        for temporary in (*self.pointers.values(), staged_path(self.base + JOURNAL, self.id)):
            unlink(temporary)
        self._clear(self.staged)

    def _clear(self, keys: Iterable[str]) -> None:
        """Remove pointers and marks, and the directories of `keys` that are empty now."""
        folders = folders_above(self.base, [path_of(self.base, key) for key in keys])
        pointers = [os.path.join(folder, JOURNAL) for folder in self._folders(self.nodes)]
        clear_known(
            self.marks.locks, pointers, (folder for folder in folders if len(folder) >= len(self.base)), self.id
        )

    def _lock(self, key: str) -> str:
        folder, separator, name = path_of(self.base, key).rpartition(os.sep)
        return f"{folder}{separator}{filelock.lock_name(name)}"

    def _folders(self, nodes: Iterable[str]) -> list[str]:
        return [path_of(self.base, node) if node else self.base for node in nodes]


def locks_below(folder: str) -> list[str]:
    """List the lock files of values below a directory."""
    others = {*MARKS, filelock.lock_name("shape")}  # the commit holds those of shapes, where it needs them
    return [
        os.path.join(here, name)
        for here, _, names in os.walk(folder)
        for name in names
        if name.endswith(filelock.LOCK_SUFFIX) and name not in others
    ]


def _kept(changes: Container[str], expected: Mapping[str, Version | None]) -> list[str]:
    """List the documents that were read, and must not be changed by others before the commit is complete."""
    return [key for key, version in expected.items() if key not in changes and _is_kept(key, version)]


def _is_kept(key: str, version: Version | None) -> bool:
    """Whether writers of a key that was read must wait: others' documents, and consolidated metadata that there may be soon."""
    return is_document(key) and (version is not None or key.rpartition("/")[2] == ".zmetadata")


def pending_commit(what: str, error: OSError) -> PendingCommitError:
    """Make the error of a transaction that is committed, and then failed with `error`."""
    return PendingCommitError(
        f"the transaction is committed, and {what}",
        got=f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror or error}",
        hint="Do not repeat its changes. Once the cause is gone, open a node for writing, which completes it",
    )


def depth(base: str, folder: str) -> int:
    """Count the directories from the root down to `folder`."""
    inside = folder[len(base) :].strip(os.sep)
    return inside.count(os.sep) + 1 if inside else 0


def _create(path: str, base: str, *, durable: bool) -> int:
    return opened(os.path.dirname(path), base, lambda: os.open(path, localfile.CREATE, 0o666), durable=durable)
