"""Remove the old tree after a swap, and carry over what was written there after it was linked.

Whole values are replaced without a lock, so that a writer may come between the link of a file and the exchange of the trees: a
*late* write, which is in the old tree only. Each file of the old tree is compared with the version that was linked. A late one
is linked into the new tree, unless the value was written there since. Directories are removed by ``rmdir``, which fails while
a late file is in one; after it, nothing can be created there, not even through an open directory.

Each process may repeat this (`finish`): the journal lists the versions. A file in the old root is there until late
*removals* are carried over: from then on a file may be missing because a process that ended has removed it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterator

from tessarr.stores.local import lock as filelock
from tessarr.stores.local import replace as localswap
from tessarr.stores.local.file import ABSENT, version_at
from tessarr.stores.local.lock import temporary_name
from tessarr.stores.local.sync import make_directories, sync_directory, sync_names
from tessarr.stores.local.transactions.journal import Step, SwapJournal, version_in_journal
from tessarr.stores.local.transactions.root import identity
from tessarr.stores.locks import PAUSE_S

_LOCKED = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

_PATIENCE = 100
"""How often in succession a lock file is looked at."""


def removals_file(identifier: str) -> str:
    """Return the name of the file in the old root that is there until late removals are carried over."""
    return temporary_name("removals", identifier)


def finish(base: str, journal: SwapJournal, held: Collection[str] = ()) -> None:
    """Remove the old tree of the root `base`, whose lock of transactions is held. May be repeated. Raises `OSError`.

    `held`: lock files, by their path below the root, that the caller holds.
    """
    root = os.path.realpath(base)
    sync_names(
        root, os.path.dirname(root), "the root is exchanged"
    )  # else a power cut could bring back an emptied tree
    old = _old_tree(base, journal)
    if old is not None:
        _OldTree(base, old, journal, held).remove()


def pending(base: str, journal: SwapJournal) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the late writes that are not carried over yet: path → file in the old tree, path → version that is removed."""
    old = _old_tree(base, journal)
    if old is None:
        return {}, {}
    tree = _OldTree(base, old, journal)
    late = {base + key: old + key for key in tree.list() if tree.is_late(key)}
    return late, {base + step.key: step.new for step in tree.removals()}


def _old_tree(base: str, journal: SwapJournal) -> str | None:
    """Return the path of the old tree, with a separator at its end; ``None``: it is removed."""
    path = os.path.join(os.path.dirname(os.path.realpath(base)), journal.name)
    try:
        is_it = stat.S_ISDIR(os.lstat(path).st_mode) and identity(path) == journal.old_directory
    except ABSENT:
        return None
    return path + os.sep if is_it else None


class _OldTree:
    """The old tree at `path` of the root `base`; both have a separator at their end."""

    def __init__(self, base: str, path: str, journal: SwapJournal, held: Collection[str] = ()) -> None:
        self.base, self.path, self._held = base, path, held
        self._steps = {step.key: step for step in journal.steps}
        self._over = frozenset(journal.over)
        self._removals = path + removals_file(journal.id)

    # -- what is late ----------------------------------------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """List the files that are in the old tree, but hidden ones."""
        for folder, folders, names in os.walk(self.path):
            folders[:] = [name for name in folders if not filelock.is_hidden(name)]
            yield from (os.path.join(folder, name)[len(self.path) :] for name in names if not filelock.is_hidden(name))

    def is_late(self, key: str) -> bool:
        """Whether a value was written to the old tree, and not to the new one since."""
        if key in self._over:
            return False
        step = self._steps.get(key, Step(key, None, None))
        present = version_in_journal(version_at(self.path + key))
        if present is None or present == step.old or _is_same(self.path + key, self.base + key):
            return False
        return version_in_journal(version_at(self.base + key)) == step.new

    def removals(self) -> Iterator[Step]:
        """List the values that were removed from the old tree after they were linked, and are in the new one still."""
        if os.path.lexists(self._removals):
            for step in self._steps.values():
                if step.old is not None and step.new is not None and not os.path.lexists(self.path + step.key):
                    yield step

    # -- carrying over, removing -----------------------------------------------------------------------------------------

    def remove(self) -> None:
        """Carry over what is late, and remove the tree."""
        for step in [*self.removals()]:
            self._remove_value(step)
        with contextlib.suppress(*ABSENT):
            os.unlink(self._removals)
        sync_directory(self.path)
        self._remove_folder("")

    def _remove_value(self, step: Step) -> None:
        path = self.base + step.key
        present = version_at(path)
        if present is not None and version_in_journal(present) == step.new:
            localswap.remove(path, present)
            sync_names(path, self.base, "the value is removed")

    def _remove_folder(self, inside: str) -> None:
        """Remove a directory; as long as other writers create files in it, look again."""
        folder = self.path + inside
        while True:
            try:
                names = os.listdir(folder)
            except FileNotFoundError:
                return
            for name in names:
                self._remove_entry(inside + name)
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                return

    def _remove_entry(self, path: str) -> None:
        here, name = self.path + path, os.path.basename(path)
        try:
            is_directory = stat.S_ISDIR(os.lstat(here).st_mode)
        except FileNotFoundError:
            return
        if is_directory and filelock.is_hidden(name):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(here)
        elif is_directory:
            self._remove_folder(f"{path}{os.sep}")
        elif name.endswith(filelock.LOCK_SUFFIX):
            self._remove_lock(path)
        elif filelock.is_hidden(name):
            self._remove_hidden(path)
        else:
            self._remove_file(path)

    def _remove_lock(self, path: str) -> None:
        """Remove a lock file. Its holder may be making a value of it, which takes a moment, or be waiting for this process."""
        if path not in self._held:
            wait_until_free(self.path + path)
        with contextlib.suppress(*ABSENT):
            os.unlink(self.path + path)

    def _remove_hidden(self, path: str) -> None:
        """Remove a temporary file; one that was not linked is moved to the new tree, where its writer will rename it."""
        with contextlib.suppress(*ABSENT):
            here, there = self.path + path, self.base + path
            if os.lstat(here).st_nlink == 1 and path.endswith(filelock.TEMPORARY_SUFFIX):
                with contextlib.suppress(OSError):
                    os.link(here, there)
            os.unlink(here)

    def _remove_file(self, key: str) -> None:
        here = self.path + key
        present = version_at(here)
        while present is not None:
            if self.is_late(key):
                self._carry_over(key)
            with contextlib.suppress(*ABSENT):
                if localswap.remove(here, present):
                    return
            present = version_at(here)
        with contextlib.suppress(*ABSENT):
            os.unlink(here)

    def _carry_over(self, key: str) -> None:
        here, there = self.path + key, self.base + key
        folder, name = os.path.split(there)
        temporary = os.path.join(folder, temporary_name(name))
        try:
            make_directories(folder, self.base, durable=False)
            os.link(here, temporary)
        except (NotADirectoryError, FileExistsError):
            return  # the transaction has put a value where a directory was: the late write was before it
        expected = version_at(there)
        step = self._steps.get(key, Step(key, None, None))
        is_placed = version_in_journal(expected) == step.new and localswap.place(temporary, there, expected)
        if not is_placed:  # written in the new tree since
            with contextlib.suppress(*ABSENT):
                os.unlink(temporary)
            return
        self._steps[key] = Step(key, step.old, version_in_journal(version_at(there)))  # a later one may follow
        sync_names(there, self.base, "the value is in place")


def wait_until_free(lock: str) -> bool:
    """Wait for a moment until no process holds the lock file at `lock`; return whether none does."""
    for _ in range(_PATIENCE):
        try:
            filelock.unlock(filelock.acquire(lock, wait=False, flags=_LOCKED))
        except ABSENT:
            return True
        except BlockingIOError:
            time.sleep(PAUSE_S / 10)
        else:
            return True
    return False


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except ABSENT:
        return False


def remove_trees(base: str, older_than_s: float, now_s: float, *, dry_run: bool) -> int:
    """Remove hidden trees beside the root `base` that were changed last more than `older_than_s` before `now_s`.

    They are second trees of processes that ended before the exchange, and what is left of old ones. Returns their number.
    """
    folder, name = os.path.split(os.path.realpath(base))
    prefix, suffix = temporary_name(name, "|").split("|")
    count = 0
    for one in os.listdir(folder) if os.path.isdir(folder) else ():
        path = os.path.join(folder, one)
        if not (one.startswith(prefix) and one.endswith(suffix) and len(one) == len(prefix) + 12 + len(suffix)):
            continue
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode) and now_s - status.st_mtime > older_than_s:
                count += 1
                if not dry_run:
                    shutil.rmtree(path)
    return count
