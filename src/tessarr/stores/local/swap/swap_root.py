"""Commit a transaction by exchanging the root with a second tree, so that a path leads to all old or all new values.

`swap` links everything in the root into a `SecondTree` beside it, writes the new values there, leaves marks in the directories
of all nodes, compares versions, syncs the second tree, and exchanges the two names by one call of the kernel, which is the
commit point. `tessarr.stores.local.transactions.late` carries over what other writers stored meanwhile, and removes the old
tree. ARCHITECTURE.md, "Transactions", has the reasons.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack

from tessarr.errors import ConflictError, StoreError, UnsupportedOperationError
from tessarr.stores.base import Version
from tessarr.stores.functions import check_listed, check_versions
from tessarr.stores.local import file as localfile
from tessarr.stores.local import lock as filelock
from tessarr.stores.local.exchange import exchange
from tessarr.stores.local.file import version_at
from tessarr.stores.local.lock import JOURNAL, lock_name, temporary_name
from tessarr.stores.local.swap.second_tree import SecondTree
from tessarr.stores.local.sync import BatchSync, make_directories
from tessarr.stores.local.transactions import late
from tessarr.stores.local.transactions.commit import Marks, depth, pending_commit
from tessarr.stores.local.transactions.journal import (
    DOCUMENTS,
    Step,
    SwapJournal,
    dump_pointer,
    version_in_journal,
)
from tessarr.stores.local.transactions.keep import keep_names, keep_values, living_above
from tessarr.stores.local.transactions.recovery import (
    LOCK_OF_TRANSACTIONS,
    MARKS,
    clear_known,
    complete_swap,
    lock_transactions,
    nodes_in,
    settled,
    unlink,
)
from tessarr.stores.local.transactions.root import identity
from tessarr.stores.local.tree import walk
from tessarr.stores.locks import PAUSE_S
from tessarr.types import Buffer

_TRIES = 100
_WAITS = 30_000
"""How often a lock file is tried that another process holds: for a minute."""
_LOOKS = 5
"""How often what was linked is compared with the root before the exchange, while other writers change something."""


def swap(
    base: str,
    url: str,
    changes: Mapping[str, Buffer | None],
    expected: Mapping[str, Version | None],
    held: Collection[str],
    listed: Collection[str] = (),
) -> str:
    """Make `changes`, all or none, if keys have the versions `expected`, by exchanging the directory `base`.

    `held`: keys whose locks the caller holds. `listed`: see `tessarr.stores.protocols.Commit`. Returns the id of the
    transaction. Raises `ConflictError` with the `keys` that have other versions, or are new, and `UnsupportedOperationError`,
    having changed nothing; `PendingCommitError` and `DurabilityError` after the commit point; `OSError` before.
    """
    check_place(base, url)
    make_directories(base, base, durable=True)
    with _alone(base):
        change = _Swap(base, url, changes, expected, held)
        try:
            change.keep()
            change.stage()
            change.mark()
            change.compare(listed)
            change.complete()
            change.publish()
        except BaseException:
            if not change.committed:
                change.undo()
            raise
    return change.id


def check_place(base: str, url: str) -> None:
    """Raise `UnsupportedOperationError` if the directory `base`, which may be missing, cannot be exchanged with another one."""
    root = os.path.realpath(base)
    folder, name = os.path.split(root)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    if not name or os.path.ismount(root):
        raise _refusal(url, "the directory is a mount point")
    snapshots = living_above([folder])
    if snapshots:
        keep_names(snapshots, [folder])
    probe = os.path.join(folder, temporary_name(name))
    try:
        os.mkdir(probe)
    except OSError as error:
        raise _refusal(url, f"no directory can be made beside it: {error.strerror}") from error
    try:
        one, other = os.path.join(probe, "1"), os.path.join(probe, "2")
        os.mkdir(one)
        os.mkdir(other)
        file = os.path.join(probe, "file")
        os.close(os.open(file, localfile.CREATE, 0o666))
        try:
            os.link(file, os.path.join(one, "file"))
        except OSError as error:
            raise _refusal(url, f"the file system has no hard links: {error.strerror}") from error
        if not exchange(one, other):
            raise _refusal(url, "the file system cannot exchange two names")
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def _refusal(url: str, got: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        "no transaction of mode 'swap' is possible here",
        store=url,
        expected="a directory on Linux beside which another one can be made, on a file system with RENAME_EXCHANGE",
        got=got,
        hint="Use mode='journal'",
    )


@contextlib.contextmanager
def _alone(base: str) -> Iterator[None]:
    """Hold the lock of transactions of the root, and of the nodes above it: of these no snapshot is taken meanwhile."""
    above = [folder for folder in _above(base, os.path.realpath(base)) if _is_node(folder)]
    while True:
        with settled(base, durable=True), ExitStack() as locks:
            # A transaction above that holds its lock may wait for that of this root: so this one does not wait.
            try:
                for folder in above:
                    locks.enter_context(lock_transactions(folder, wait=False))
                is_alone = True
            except BlockingIOError:
                is_alone = False
            if is_alone:
                yield
                return
        time.sleep(PAUSE_S)


def _above(*folders: str) -> list[str]:
    """List the directories above `folders`, with a separator at their end."""
    found: dict[str, None] = {}
    for folder in folders:
        here = os.path.dirname(folder.rstrip(os.sep))
        while here not in found:
            found[here] = None
            here = os.path.dirname(here)
    return [folder.rstrip(os.sep) + os.sep for folder in found]


def _is_node(folder: str) -> bool:
    return any(os.path.lexists(folder + name) for name in DOCUMENTS)


class _Swap:
    """One commit."""

    def __init__(
        self,
        base: str,
        url: str,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        held: Collection[str],
    ) -> None:
        self.base, self.url, self.changes, self.expected = base, url, changes, expected
        self.id = os.urandom(6).hex()
        self.committed = False
        self.root = os.path.realpath(base)
        self.folder, name = os.path.split(self.root)
        self.batch = BatchSync(self.folder)  # before the first file is written
        self.tree = SecondTree(base, os.path.join(self.folder, temporary_name(name, self.id)), url, changes)
        self.marks = Marks(base, self.id, durable=False)
        self._held = {LOCK_OF_TRANSACTIONS, *map(_lock_of, held)}
        self._before: dict[str, Version | None] = {}
        self._written: list[str] = []

    def keep(self) -> None:
        """Keep all values for the snapshots that may read them: a link changes the time of a file."""
        folders = [folder.rstrip(os.sep) + os.sep for folder in _folders(self.base)]
        snapshots = living_above([*folders, self.folder])
        if snapshots:
            keep_names(snapshots, [self.folder, *folders])
            keep_values(snapshots, sys.maxsize, _files(folders))

    def stage(self) -> None:
        """Make the second tree."""
        self.tree.link()
        self._written = self.tree.write()

    def mark(self) -> None:
        """Leave marks in the directories of all nodes, and wait for the holders of lock files, who came before them."""
        for _ in range(_TRIES):
            folders = {self.base, *(self.base + inside for inside in self.tree.nodes)}
            self.marks.leave(folder + name for folder in folders for name in MARKS)
            self.tree.link()
            busy = [self.base + lock for lock in self.tree.locks if lock not in self._held and self._is_busy(lock)]
            if not busy:
                return
            # Its holder may be waiting for this transaction, at a mark.
            self._clear_marks()
            if not all(_was_released(self.marks, lock) for lock in busy):
                break
        raise ConflictError(
            "other writers keep holding locks in the directory, and nothing was written",
            store=self.url,
            got=os.path.basename(busy[0]),
            hint="Run the transaction again when they have ended, or use mode='journal'",
        )

    def _is_busy(self, lock: str) -> bool:
        return os.path.basename(lock) not in MARKS and not late.wait_until_free(self.base + lock)

    def compare(self, listed: Collection[str]) -> None:
        """Compare the versions, and list again. Raises `ConflictError`."""
        found = {key: version_at(self.base + key) for key in (*self.changes, *self.expected)}
        check_versions(self.url, self.expected, found.__getitem__)
        check_listed(self.url, listed, functools.partial(walk, self.base), self.changes, self.expected)
        self._before = {key: found[key] for key in self.changes}

    def complete(self) -> None:
        """Add to the second tree what was changed in the root meanwhile, and what it needs as a root; sync it."""
        for _ in range(_LOOKS):
            if not self.tree.link():
                break
        self.tree.prune()
        self.tree.link_snapshots()
        self._created(self.base + late.removals_file(self.id), b"")
        os.link(self.base + LOCK_OF_TRANSACTIONS, self.tree.path + LOCK_OF_TRANSACTIONS)
        for inside in nodes_in(self.tree.keys()):
            mark = dump_pointer(self.id, depth(self.base, self.base + inside))
            for name in (*MARKS, *([JOURNAL] if inside else [])):
                self._created(self.tree.path + inside + name, mark)
        self.journal = self._journal()
        self._created(self.tree.path + JOURNAL, self.journal.dump())
        folders = [folder for folder, *_ in os.walk(self.tree.path)]
        self.batch.sync(self._written, [self.base, self.folder, *folders])

    def _created(self, path: str, content: bytes) -> None:
        """Write a new file, which is synced with the second tree."""
        localfile.write_value(os.open(path, localfile.CREATE, 0o666), [content], durable=False)
        self._written.append(path)

    def _journal(self) -> SwapJournal:
        """Describe what is in both trees, to find late writes."""
        read = {key: version for key, version in self._before.items() if key in self.expected}
        return SwapJournal(
            self.id,
            identity(self.tree.path),
            os.path.basename(self.tree.path.rstrip(os.sep)),
            identity(self.base),
            self.tree.steps(read),
            [key for key in self.changes if key not in read],
        )

    def publish(self) -> None:
        """Exchange the trees, the commit point, and remove the old one."""
        if not exchange(self.tree.path.rstrip(os.sep), self.root):
            raise _refusal(self.url, "the two directories could not be exchanged")
        self.committed = True
        try:
            complete_swap(self.base, self.journal, self._held)
        except StoreError:
            raise
        except OSError as error:
            raise pending_commit("the old tree could not be removed", error) from error

    def undo(self) -> None:
        """Remove what was made, before the commit point."""
        self._clear_marks()
        unlink(self.base + late.removals_file(self.id))
        shutil.rmtree(self.tree.path, ignore_errors=True)

    def _clear_marks(self) -> None:
        clear_known(self.marks.locks, (), (), self.id)
        self.marks.locks.clear()


def _was_released(marks: Marks, lock: str) -> bool:
    """Wait for the holder of a lock file, but not forever: it may be waiting for a lock that the caller holds."""
    for _ in range(_WAITS):
        with contextlib.suppress(BlockingIOError):
            marks.wait_for(lock, wait=False)
            return True
        time.sleep(PAUSE_S / 10)
    return False


def _lock_of(key: str) -> str:
    """Return where the lock file of a key is, below the root."""
    folder, separator, name = key.rpartition("/")
    return f"{folder}{separator}{lock_name(name)}"


def _folders(base: str) -> Iterator[str]:
    """List a directory and those below it, but hidden ones."""
    for folder, names, _ in os.walk(base):
        names[:] = [name for name in names if not filelock.is_hidden(name)]
        yield folder


def _files(folders: Collection[str]) -> Iterator[tuple[str, Step]]:
    """List the files in directories, as steps that replace them."""
    for folder in folders:
        for name in os.listdir(folder):
            if not filelock.is_hidden(name):
                yield folder + name, Step(name, version_in_journal(version_at(folder + name)), None)
