"""The methods of `LocalStore` for transactions and whole directories, and its reads while a journal is pending that it must
not carry out.

Journals are rare: their modules are imported where there is one.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from typing import TYPE_CHECKING

from tessarr.errors import StoreError
from tessarr.stores.base import ConditionalStore, Version
from tessarr.stores.local import lock as filelock
from tessarr.stores.local import tree as localtree
from tessarr.stores.local.file import ABSENT, READ, version_of
from tessarr.stores.local.lock import JOURNAL, is_hidden
from tessarr.stores.locks import holding
from tessarr.stores.protocols import Commit
from tessarr.types import Buffer

if TYPE_CHECKING:
    from tessarr.stores.base import Store
    from tessarr.stores.local.transactions.recovery import Pending
    from tessarr.stores.local.transactions.stage import Stage, StagedValue


class Transactional(ConditionalStore):
    """The base of `LocalStore`."""

    durable: bool
    _base: str
    _pending: Pending | None = None
    """The changes of a journal, for a store that is read-only."""

    def commit(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        """See `tessarr.stores.protocols.Commit`: by a journal. `durable` overrides the store's."""
        self.commit_staged(changes, expected, None, listed=listed, durable=durable)

    def commit_staged(
        self,
        changes: Mapping[str, Buffer | StagedValue | None],
        expected: Mapping[str, Version | None],
        stage: Stage | None,
        *,
        listed: Collection[str] = (),
        durable: bool | None = None,
    ) -> None:
        """Commit, as `commit` does, `changes` of which some values are in `stage`."""
        from tessarr.stores.local.transactions import commit
        from tessarr.stores.local.transactions.stage import StagedValue

        self._check_writable("")
        for key, value in changes.items():
            if not isinstance(value, StagedValue):  # the file of one is beside its key
                self._writable_path(key)
        durable = self.durable if durable is None else durable
        try:
            commit.commit(self._base, self.url, changes, expected, listed=listed, durable=durable, stage=stage)
        except OSError as error:
            raise self._trouble("commit", "", error) from error

    def swap(
        self,
        changes: Mapping[str, Buffer | None],
        expected: Mapping[str, Version | None],
        held: Collection[str],
        listed: Collection[str] = (),
    ) -> None:
        """Commit, as `commit` does, by exchanging the directory with a second tree. `held`: keys whose locks the caller holds.

        Always durable. Raises `UnsupportedOperationError` where that is not possible.
        """
        from tessarr.stores.local.swap.swap_root import swap

        self._check_writable("")
        for key in changes:
            self._writable_path(key)
        try:
            swap(self._base, self.url, changes, expected, held, listed)
        except OSError as error:
            raise self._trouble("commit", "", error) from error

    def check_swap(self) -> None:
        """Raise `UnsupportedOperationError` if `swap` is not possible here."""
        from tessarr.stores.local.swap.swap_root import check_place

        try:
            check_place(self._base, self.url)
        except OSError as error:
            raise self._trouble("look beside", "", error) from error

    def stage(self) -> Stage:
        """Begin to stage values for `commit_staged`. Raises `OSError`."""
        from tessarr.stores.local.transactions.stage import Stage

        return Stage(self._base)

    def snapshot(self) -> Store:
        """See `tessarr.stores.protocols.Snapshot`: transactions keep what they replace, by hard links."""
        from tessarr.stores.local.transactions.local_snapshot import take

        return take(self._base, self.url)

    def settle(self, path: str) -> None:
        """See `tessarr.stores.protocols.Settle`: by the journal in the directory at `path`, or the one that it points to."""
        from tessarr.stores.local.transactions.recovery import Pending, settle

        folder = self._path(path) if path else self._base.rstrip(os.sep) or os.sep
        try:
            pending = settle(folder, read_only=self.read_only, durable=self.durable)
        except OSError as error:
            raise self._trouble("complete a transaction in", f"{path}/", error) from error
        if pending is not None:
            known = self._pending or Pending({}, {})
            self._pending = Pending({**known.set, **pending.set}, {**known.removed, **pending.removed})

    def _lockable_path(self, key: str) -> str:
        """Return the path of a key that will be locked. Its lock file changes the directory: for snapshots names are kept."""
        from tessarr.stores.local.transactions.keep import keep_names, living_above

        path = self._writable_path(key)
        folder = os.path.dirname(path)
        if snapshots := living_above([folder]):
            keep_names(snapshots, [folder])
        return path

    def _marks_at(self, path: str, note: filelock.Note) -> tuple[bytes, str | None]:
        """Return the mark that a transaction left in the lock file of `path`, which is held, or else the path of that in a
        directory above."""
        if os.fstat(note.descriptor).st_size:
            from tessarr.stores.local.transactions.recovery import mark_in

            if left := mark_in(note):
                return left, None
        return b"", filelock.node_mark(path, self._base)

    def _settle_marks(self, lock: str, left: bytes, above: str | None) -> None:
        """Complete the transaction that left a mark. The lock file is not held."""
        from tessarr.stores.local.transactions.recovery import settle_mark, settle_node_mark

        if left:
            settle_mark(lock, left, durable=self.durable)
        if above:
            settle_node_mark(above, durable=self.durable)

    def _settle_below(self) -> None:
        """Complete every transaction that has a journal or a pointer below the root, so that no staged file is lost."""
        from tessarr.stores.local.transactions.keep import FOLDER, living_above
        from tessarr.stores.local.transactions.recovery import find, settle

        for folder, folders, files in os.walk(self._base):
            if FOLDER in folders:
                living_above([folder])  # removes what ended processes left
            folders[:] = [name for name in folders if not is_hidden(name)]
            if JOURNAL in files and find(folder) is not None:
                settle(folder, read_only=False, durable=self.durable)

    @holding
    def _hold_tree(self, prefix: str, path: str) -> Generator[bool, None, None]:
        """Exclude transactions that change values in the directory at `path`, which is to be removed, replaced or renamed.

        A transaction that is being carried out there is waited for; one whose process ended is completed. `prefix`: of the
        keys there. Gives whether there may be transactions.
        """
        from tessarr.stores.local.transactions.recovery import hold_journal, settled

        if not isinstance(self, Commit) or not os.path.isdir(path) or os.path.islink(path.rstrip(os.sep)):
            yield False
            return
        with (hold_journal if prefix else settled)(path, durable=self.durable):
            yield True

    def rename_prefix(self, source: str, dest: str) -> bool:
        """See `RenamePrefix`: one rename of a directory."""
        if not (source and dest):
            return False
        path, target = self._writable_path(source[:-1]), self._writable_path(dest[:-1])
        try:
            with self._hold_tree(source, path):
                if not localtree.rename_tree(path, target, self._base, durable=self.durable):
                    return False
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(target, filelock.lock_name(JOURNAL)))  # held, under its former name
        except OSError as error:
            raise self._trouble("rename", source, error) from error
        self._prune(source[:-1])
        return True

    def exchange_prefixes(self, one: str, other: str) -> bool:
        """See `ExchangePrefixes`: the exchange of two directories, where the file system has it."""
        if not (one and other):
            return False
        first, second = self._writable_path(one[:-1]), self._writable_path(other[:-1])
        try:
            with contextlib.ExitStack() as held:
                for prefix, path in sorted([(one, first), (other, second)]):
                    held.enter_context(self._hold_tree(prefix, path))
                if not localtree.exchange_trees(first, second, self._base, durable=self.durable):
                    return False
                for path in (first, second):
                    with contextlib.suppress(OSError):
                        os.unlink(os.path.join(path, filelock.lock_name(JOURNAL)))  # held, under its former name
        except OSError as error:
            raise self._trouble("exchange", one, error) from error
        return True

    def remove_leftovers(self, *, older_than_s: float = 86_400, dry_run: bool = False) -> int:
        """Remove hidden temporary files and trees that killed processes left. Returns their number.

        Files younger than `older_than_s` seconds are kept, because they may still be in use. With `dry_run` all stay.
        """
        if not dry_run:
            self._check_writable("")
            self._settle_below()
        from tessarr.stores.local.transactions.late import remove_trees

        now_s = time.time()
        count = remove_trees(self._base, older_than_s, now_s, dry_run=dry_run)
        return count + localtree.remove_leftovers(self._base, older_than_s, now_s, dry_run=dry_run)

    # -- reading while a journal is pending -------------------------------------------------------------------------

    def _open_value(self, path: str) -> int:
        """Open the file of a value for reading, or the one that is staged for it. Raises `OSError`."""
        if self._pending is not None:
            staged = self._pending.set.get(path)
            if staged is not None:
                try:
                    return os.open(staged, READ | getattr(os, "O_NOFOLLOW", 0))
                except ABSENT:
                    pass  # another process has renamed it
            descriptor = os.open(path, READ)
            if self._is_removed(path, os.fstat(descriptor)):
                os.close(descriptor)
                raise FileNotFoundError(path)
            return descriptor
        return os.open(path, READ)

    def _stat_value(self, path: str) -> os.stat_result:
        """Return the status of the file of a value, or of the one that is staged for it. Raises `OSError`."""
        if self._pending is not None:
            staged = self._pending.set.get(path)
            if staged is not None:
                try:
                    return os.lstat(staged)
                except ABSENT:
                    pass
            status = os.stat(path)
            if self._is_removed(path, status):
                raise FileNotFoundError(path)
            return status
        return os.stat(path)

    def _is_removed(self, path: str, status: os.stat_result) -> bool:
        """Whether a journal removes the file at `path`, and not one that was written since."""
        from tessarr.stores.local.transactions.journal import version_in_journal

        assert self._pending is not None
        old = self._pending.removed.get(path)
        return old is not None and stat.S_ISREG(status.st_mode) and old == version_in_journal(version_of(status))

    def _with_pending(self, keys: Iterator[str], prefix: str) -> Iterator[str]:
        """List `keys`, those under `prefix`, as a pending journal leaves them."""
        if self._pending is None:
            yield from keys
            return
        seen = set()
        for key in keys:
            seen.add(key)
            if self._path(key) not in self._pending.removed or self.exists(key):
                yield key
        for path in self._pending.set:
            key = path[len(self._base) :].replace(os.sep, "/")
            if path.startswith(self._base) and key.startswith(prefix) and key not in seen and self.exists(key):
                yield key

    # -- given by `LocalStore` ---------------------------------------------------------------------------------------

    def _path(self, key: str) -> str:
        raise NotImplementedError

    def _writable_path(self, key: str) -> str:
        raise NotImplementedError

    def _trouble(self, what: str, key: str, error: OSError) -> StoreError:
        raise NotImplementedError

    def _prune(self, key: str) -> None:
        raise NotImplementedError
