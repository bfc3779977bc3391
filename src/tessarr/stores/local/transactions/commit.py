"""Commit several changes of local files at once or not at all.

`commit` stages values beside their keys, leaves a mark in the lock file of each key and of each document that was read,
compares versions, renames the journal into place, which is the commit point, carries its steps out, and removes it.
`recovery`, beside this module, completes what a process that ended has begun. ARCHITECTURE.md, "Transactions", has the reasons.

Roots may be nested (``data.zarr`` and ``data.zarr/t``). Each root has a lock of transactions; marks are made in the order of
their paths, so that two transactions of different roots wait for each other in one direction only.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping

from tessarr.errors import DurabilityError, PendingCommitError
from tessarr.stores.base import Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.functions import check_versions
from tessarr.stores.local import file as localfile
from tessarr.stores.local import lock as filelock
from tessarr.stores.local.file import version_of
from tessarr.stores.local.lock import JOURNAL
from tessarr.stores.local.sync import sync_directory, sync_files
from tessarr.stores.local.transactions.journal import Journal, Step, dump_pointer, parse_pointer, version_in_journal
from tessarr.stores.local.transactions.keep import keep_names, living_above
from tessarr.stores.local.transactions.recovery import (
    MARK_NBYTES,
    check_inside,
    clear,
    finish,
    identity,
    opened,
    path_of,
    read_small,
    root_above,
    settle_mark,
    settled,
    staged_path,
    sync_folders,
    unlink,
    version_at,
)
from tessarr.types import Buffer

DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs")
"""Names whose presence makes a directory that of a node, which gets a pointer."""


def commit(
    base: str,
    url: str,
    changes: Mapping[str, Buffer | None],
    expected: Mapping[str, Version | None],
    *,
    durable: bool,
) -> str:
    """Make `changes` (key → value; ``None``: remove) in this order, all or none, if keys have the versions `expected`.

    Returns the id of the transaction. Raises `ConflictError` with the `keys` that have other versions, having changed nothing;
    `PendingCommitError` and `DurabilityError` after the commit point; `OSError` before.
    """
    change = _Change(base, url, durable)
    folders = sorted({base, *(os.path.dirname(path_of(base, key)) for key in changes)})
    try:
        keep_names(living_above(folders), folders)
        change.stage(changes)
        with settled(base, durable=durable):
            keep_names(living_above(folders), folders)
            change.mark(expected)
            change.write_pointers()
            change.publish()
    except BaseException:
        if not change.committed:
            change.undo()
        raise
    return change.id


class _Change:
    """One commit."""

    def __init__(self, base: str, url: str, durable: bool) -> None:
        self.base, self.url, self.durable = base, url, durable
        self.id = os.urandom(6).hex()
        self.committed = False
        self.staged: dict[str, str | None] = {}
        """Key → version of the staged file; ``None``: the key is removed."""
        self.kept: list[str] = []
        """Keys of documents that were read: they stay as they are until the journal is in place."""

    def stage(self, changes: Mapping[str, Buffer | None]) -> None:
        """Write the values beside their keys; with `durable`, sync them."""
        checked: set[str] = set()
        for key, value in changes.items():
            path = path_of(self.base, key)
            check_inside(self.base, os.path.dirname(path), checked)
            self.staged[key] = None
            if value is not None:
                temporary = staged_path(path, self.id)
                descriptor = _create(temporary, self.base, durable=self.durable)
                localfile.write_value(descriptor, [byte_view(value)], durable=False)
                self.staged[key] = version_in_journal(version_of(os.stat(temporary)))
        if self.durable:
            sync_files([self._staged(key) for key, version in self.staged.items() if version is not None])

    def mark(self, expected: Mapping[str, Version | None]) -> None:
        """Leave the marks, and compare the versions. Raises `ConflictError`."""
        self.kept = [key for key, version in expected.items() if key not in self.staged and _is_kept(key, version)]
        paths = [path_of(self.base, key) for key in (*self.staged, *self.kept)]
        self.pointers = _pointers(self.base, self.staged)
        for path in sorted([*paths, *self.pointers, self.base + JOURNAL]):
            self._mark(path)
        found = {key: version_at(path_of(self.base, key)) for key in {**expected, **self.staged}}
        check_versions(self.url, expected, found.__getitem__)
        self.steps = [Step(key, version_in_journal(found[key]), new) for key, new in self.staged.items()]

    def _mark(self, path: str) -> None:
        folder, name = os.path.split(path)
        lock = os.path.join(folder, filelock.lock_name(name))
        while True:
            descriptor = opened(folder, self.base, lambda: filelock.acquire(lock), durable=self.durable)
            try:
                left = localfile.pread(descriptor, MARK_NBYTES, 0)
                other = parse_pointer(left)
                # A mark of this root is of a process that ended before its commit point.
                if other is None or root_above(folder, other[1]) == self.base:
                    os.ftruncate(descriptor, 0)
                    localfile.write(descriptor, dump_pointer(self.id, _depth(self.base, folder)))
                    return
            finally:
                filelock.unlock(descriptor)
            settle_mark(lock, left, durable=self.durable)

    def write_pointers(self) -> None:
        for pointer in self.pointers:
            folder = os.path.dirname(pointer)
            temporary = staged_path(pointer, self.id)
            descriptor = _create(temporary, self.base, durable=self.durable)
            localfile.write_value(descriptor, [dump_pointer(self.id, _depth(self.base, folder))], durable=self.durable)
            os.replace(temporary, pointer)
        if self.durable:  # the names of staged files and pointers
            sync_folders(self.base, [*(path_of(self.base, key) for key in self.staged), *self.pointers])

    def publish(self) -> None:
        """Rename the journal into place, the commit point; carry the steps out; remove the journal."""
        journal = Journal(self.id, identity(self.base), self.steps)
        target = self.base + JOURNAL
        temporary = staged_path(target, self.id)
        descriptor = os.open(temporary, localfile.CREATE, 0o666)
        localfile.write_value(descriptor, [journal.dump()], durable=self.durable)
        try:
            os.replace(temporary, target)
        except OSError:  # a network file system may report a failure of a rename that it made
            self.committed = read_small(target) == journal.dump()
            if not self.committed:
                raise
        self.committed = True
        try:
            if self.durable:
                sync_directory(self.base)
            finish(self.base, journal, durable=self.durable)
            clear(self.base, self.kept, self.id)
        except DurabilityError:
            raise
        except OSError as error:
            raise PendingCommitError(
                "the transaction is committed, and could not be carried out to the end",
                got=f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror or error}",
                hint="Do not repeat its changes. Once the cause is gone, open a node for writing, which completes it",
            ) from error

    def undo(self) -> None:
        """Remove what was staged, before the commit point."""
        for key in self.staged:
            unlink(self._staged(key))
        clear(self.base, [*self.staged, *self.kept], self.id)

    def _staged(self, key: str) -> str:
        return staged_path(path_of(self.base, key), self.id)


def _is_kept(key: str, version: Version | None) -> bool:
    """Whether writers of a key that was read must wait: others' documents, and consolidated metadata that there may be soon."""
    name = key.rpartition("/")[2]
    return name in DOCUMENTS and (version is not None or name == ".zmetadata")


def _pointers(base: str, keys: Iterable[str]) -> list[str]:
    """List the paths of pointers: in the directories of nodes between the root and the keys."""
    folders: dict[str, bool] = {}
    for key in keys:
        folder, _, name = key.rpartition("/")
        if folder and name in DOCUMENTS:
            folders[folder] = True
        while folder:
            folders.setdefault(folder, False)
            folder = folder.rpartition("/")[0]
    return [
        path_of(base, f"{folder}/{JOURNAL}")
        for folder, written in folders.items()
        if written or any(os.path.lexists(path_of(base, f"{folder}/{name}")) for name in DOCUMENTS)
    ]


def _depth(base: str, folder: str) -> int:
    """Count the directories from the root down to `folder`."""
    inside = folder[len(base) :].strip(os.sep)
    return inside.count(os.sep) + 1 if inside else 0


def _create(path: str, base: str, *, durable: bool) -> int:
    return opened(os.path.dirname(path), base, lambda: os.open(path, localfile.CREATE, 0o666), durable=durable)
