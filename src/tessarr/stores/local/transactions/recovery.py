"""Complete a committed transaction of local files that its process did not complete.

`settle` is called where a journal was found. It carries the steps out, or, for a store that is read-only, describes them
(`Pending`). A committer carries its steps out by the same functions.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Callable, Collection, Generator, Iterable
from typing import NamedTuple

from tessarr.errors import DurabilityError, JournalError, StoreError
from tessarr.stores.local import file as localfile
from tessarr.stores.local import lock as filelock
from tessarr.stores.local import replace as localswap
from tessarr.stores.local.file import ABSENT, version_at, version_of
from tessarr.stores.local.lock import JOURNAL
from tessarr.stores.local.sync import BatchSync, make_directories
from tessarr.stores.local.transactions import late
from tessarr.stores.local.transactions.journal import (
    MAX_NBYTES,
    AnyJournal,
    Journal,
    RootJournal,
    Step,
    SwapJournal,
    is_document,
    parse,
    parse_pointer,
    version_in_journal,
)
from tessarr.stores.local.transactions.keep import changed_at, keep_names, keep_values, living_above
from tessarr.stores.local.transactions.many import ComparedSteps, StagedFiles
from tessarr.stores.local.transactions.root import carry_out, identity, pending
from tessarr.stores.local.tree import remove_tree, walk
from tessarr.stores.locks import holding
from tessarr.stores.path import windows_path

LOCK_OF_TRANSACTIONS = filelock.lock_name("tessarr-transaction")
MARKS = (filelock.lock_name(JOURNAL), filelock.NODE_MARK)
"""The lock files in a node's directory that transactions mark."""
_NO_LINKS = localfile.READ | getattr(os, "O_NOFOLLOW", 0)
LOCKED = _NO_LINKS | os.O_RDWR
"""Flags of `filelock.acquire` for a file that need not be there."""
_TRIES = 100
_WITHOUT_LOCKS = (errno.ENOENT, errno.ENOTDIR, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
MARK_NBYTES = 4096


# -- locking, completing -------------------------------------------------------------------------------------------------


@holding
def lock_transactions(base: str, *, durable: bool = False, wait: bool = True) -> Generator[None, None, None]:
    """Hold the lock of transactions of the root `base`. Raises `OSError`; `BlockingIOError` when not `wait` and it is held."""
    path = base + LOCK_OF_TRANSACTIONS
    with filelock.held(path, lambda: opened(base, base, lambda: filelock.acquire(path, wait=wait), durable=durable)):
        yield


@holding
def settled(base: str, *, durable: bool) -> Generator[None, None, None]:
    """Hold the lock of transactions while there is neither a journal at the root, nor a pointer to one above."""
    while True:
        settle(base.rstrip(os.sep) or os.sep, read_only=False, durable=durable)
        with lock_transactions(base, durable=durable):
            if find(base.rstrip(os.sep) or os.sep) is None:
                yield
                return


@holding
def hold_journal(folder: str, *, durable: bool) -> Generator[None, None, None]:
    """Hold the lock file that every transaction marks which changes the node at `folder`, or nodes below.

    `folder` may be renamed or removed meanwhile: the lock file of a new directory of that name is not touched. Where there is
    no such directory any more, or a file system without locks, there are no transactions, and nothing is held.
    """
    lock = os.path.join(folder, filelock.lock_name(JOURNAL))
    try:
        while True:
            with filelock.held(lock, lambda: filelock.acquire(lock)) as note:
                left = mark_in(note)
                if not left:
                    yield
                    return
            settle_mark(lock, left, durable=durable)
    except OSError as error:
        if isinstance(error, StoreError) or error.errno not in _WITHOUT_LOCKS:
            raise
    yield


def find(folder: str) -> tuple[str, bytes] | None:
    """Find the journal that the file at `folder` is, or is a pointer to. Returns the root that it is of, and its content."""
    data = read_small(os.path.join(folder, JOURNAL))
    if data is None:
        return None
    pointer = parse_pointer(data)
    if pointer is None:
        return (folder.rstrip(os.sep) + os.sep, data) if data else None
    root = root_above(folder, pointer[1])
    above = read_small(root + JOURNAL) if pointer[1] else None
    if not above or f'"id":"{pointer[0]}"'.encode() not in above.partition(b"\n")[0] or parse_pointer(above):
        return None  # the transaction has ended, or is not committed
    return root, above


def root_above(folder: str, above: int) -> str:
    """Return the directory so many levels above `folder`, with a separator at its end."""
    root = folder.rstrip(os.sep)
    for _ in range(above):
        root = os.path.dirname(root)
    return root.rstrip(os.sep) + os.sep


class Pending(NamedTuple):
    """The changes of a journal that a store must not carry out, for a read-only overlay."""

    set: dict[str, str]
    """Path of a file → the staged file, as long as it is there."""
    removed: dict[str, str | None]
    """Path of a file → the version of it that is removed."""


def settle(folder: str, *, read_only: bool, durable: bool) -> Pending | None:
    """Complete the transaction whose journal, or a pointer to it, is in `folder`; `read_only` returns its changes instead.

    Waits for a transaction that is being carried out. Raises `JournalError`, `OSError`.
    """
    while (found := find(folder)) is not None:
        root, data = found
        if not read_only:
            try:
                with lock_transactions(root):
                    recover(root, durable=durable)
                continue
            except OSError as error:
                if isinstance(error, StoreError) or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
        journal = _believed(root, data)
        if isinstance(journal, RootJournal):
            return Pending(*pending(root, journal))
        if isinstance(journal, SwapJournal):
            return Pending(*late.pending(root, journal))
        paths = {step: path_of(root, step.key) for step in journal.steps}
        return Pending(
            {path: staged_path(path, journal.id) for step, path in paths.items() if step.new is not None},
            {path: step.old for step, path in paths.items() if step.new is None},
        )
    return None


def settle_mark(lock: str, mark: bytes, *, durable: bool) -> bool:
    """Wait for, or complete, the transaction that left `mark` in the lock file at `lock`; then remove the mark.

    Returns whether the mark was one; anything else in a lock file is ignored.
    """
    pointer = parse_pointer(mark)
    if pointer is None:
        return False
    root = root_above(os.path.dirname(lock), pointer[1])
    with lock_transactions(root):
        recover(root, durable=durable)
        remove_mark(lock, pointer[0])
    return True


def mark_in(note: filelock.Note) -> bytes:
    """Return the mark that a transaction left in a lock file, which is held; ``b""``: none. With a mark the file stays."""
    size = os.fstat(note.descriptor).st_size
    left = localfile.pread(note.descriptor, MARK_NBYTES, 0) if size else b""
    note.is_marked = parse_pointer(left) is not None
    return left if note.is_marked else b""


def settle_node_mark(mark: str, *, durable: bool) -> None:
    """Complete the transaction that left a mark in the directory of a node; remove a file that has no mark."""
    left = b""
    with contextlib.suppress(*ABSENT), filelock.held(mark, lambda: filelock.acquire(mark, flags=LOCKED)) as note:
        left = mark_in(note)
    if left:
        settle_mark(mark, left, durable=durable)


def recover(root: str, *, durable: bool) -> None:
    """Complete the transaction whose journal is at `root`, if there is one, while the lock of transactions is held."""
    data = read_small(root + JOURNAL)
    if data and parse_pointer(data) is None:
        journal = _believed(root, data)
        if isinstance(journal, RootJournal):
            carry_out(root, journal, durable=durable)
            return
        if isinstance(journal, SwapJournal):
            complete_swap(root, journal)
            return
        folders = {root, *(os.path.dirname(path_of(root, step.key)) for step in journal.steps)}
        finish(root, journal, folders, BatchSync(root) if durable else None)
        clear(root, [step.key for step in journal.steps], journal.id)


def complete_swap(root: str, journal: SwapJournal, held: Collection[str] = ()) -> None:
    """Remove the old tree of a swap, and what says that there is one, while the lock of transactions is held.

    `held`: further lock files that the caller holds, by their path below the root.
    """
    late.finish(root, journal, {LOCK_OF_TRANSACTIONS, *held})
    unlink(root + JOURNAL)
    folders = [root + inside for inside in nodes_in([*(step.key for step in journal.steps), *journal.over])]
    pointers = [folder + JOURNAL for folder in folders if folder != root]
    clear_known([folder + name for folder in folders for name in MARKS], pointers, (), journal.id)


def nodes_in(keys: Iterable[str]) -> set[str]:
    """Return the prefixes of the nodes whose documents are among `keys`, and that of the root."""
    return {"", *(key[: key.rfind("/") + 1] for key in keys if is_document(key))}


def _believed(root: str, data: bytes) -> AnyJournal:
    """Parse a journal. Raises `JournalError` for one that is damaged, or of another directory."""
    try:
        journal = parse(data)
    except JournalError as error:
        raise error.at(store=root, key=JOURNAL)  # noqa: B904 - the same error
    if journal.directory != identity(root):
        raise JournalError(
            "the journal of a transaction is of another directory: this one was copied while the transaction was carried out",
            store=root,
            key=JOURNAL,
            expected=f"the inode {journal.directory}",
            got=identity(root),
            hint="Copy the directory again; or rename the file, and the values stay as they are",
        )
    return journal


class Checked(NamedTuple):
    """What a process has found out that begins to carry a journal out: all keys are inside the root, all values staged."""

    files: StagedFiles
    """What is replaced is freed with it, which takes time."""
    steps: ComparedSteps


def finish(
    base: str, journal: Journal, watched: Collection[str], batch: BatchSync | None, checked: Checked | None = None
) -> None:
    """Carry out the steps of a journal that are not carried out yet, and remove it. May be repeated.

    `watched`: directories that may be in a snapshot. `batch` makes the changes durable. With `checked` no step is carried out
    yet.
    """
    inside: set[str] = set()
    _keep(base, journal, watched)
    linked: list[str] = []
    done = 0 if checked is None else _place(*checked)
    for step in journal.steps[done:] if done < len(journal.steps) else ():
        path = path_of(base, step.key)
        check_inside(base, os.path.dirname(path), inside)
        staged = staged_path(path, journal.id)
        linked += [staged] if step.old is None and step.new is not None else []
        _carry_out(path, step, staged, lambda path: _clear_way(base, path, journal), keep=batch is not None)
    if batch is not None:
        keys = [step.key for step in journal.steps] if checked is None else checked.steps.staged
        _sync_names(batch, base, [path_of(base, key) for key in keys])
        for staged in linked:  # a power cut could lose the new name alone of two changes
            unlink(staged)
    unlink(base + JOURNAL)  # not synced: a journal that a power cut brings back finds nothing to do


def _place(files: StagedFiles, steps: ComparedSteps) -> int:
    """Carry out the first steps, as far as they are renames that succeed: chunks, then documents of one depth after another.

    Returns their number; later ones may have been carried out too.
    """
    done = 0
    for rank, group in itertools.groupby(steps.staged.items(), _rank):
        stop = done + sum(1 for _ in group)
        if rank is None or not files.place(steps.compared, done, stop):
            break
        done = stop
    return done


def _rank(staged: tuple[str, str | None]) -> int | None:
    """Return the depth of a document, and for any other value -1; ``None``: it is removed."""
    key, new = staged
    return None if new is None else key.count("/") if is_document(key) else -1


def _keep(base: str, journal: Journal, watched: Collection[str]) -> None:
    """Keep what the journal replaces for the snapshots that may read it."""
    snapshots = living_above(sorted(watched))
    if snapshots:
        steps = [(path_of(base, step.key), step) for step in journal.steps]
        keep_names(snapshots, sorted({base, *(os.path.dirname(path) for path, _ in steps)}))
        keep_values(snapshots, os.stat(base + JOURNAL).st_ctime_ns, steps)


def _carry_out(path: str, step: Step, staged: str, clear_way: Callable[[str], None], *, keep: bool) -> None:
    present = version_at(path)
    if step.new is None:
        if present is not None and version_in_journal(present) == step.old:
            localswap.remove(path, present)
        return
    try:
        status = os.lstat(staged)
    except ABSENT:
        return  # it was renamed
    if version_in_journal(version_of(status)) != step.new:
        raise JournalError(
            "a staged value of a transaction has another version than its journal says",
            key=step.key,
            expected=step.new,
            got=version_in_journal(version_of(status)),
            hint="Rename the journal at the root of the transaction: the other values stay as they are",
        )
    if present is None and os.path.isdir(path):
        clear_way(path)
    # A later write stays: it came after the whole transaction. A file that was linked into place is there twice.
    if version_in_journal(present) != step.old or not localswap.place(staged, path, present, keep=keep):
        unlink(staged)


def _clear_way(base: str, path: str, journal: Journal) -> None:
    """Remove the directory at `path`, where the journal sets a value and removes every value below.

    A value that came since is of an array that is not there any more. Raises `JournalError` for an older one.
    """
    removed = {path_of(base, step.key) for step in journal.steps if step.new is None}
    committed = os.stat(base + JOURNAL).st_ctime_ns
    for key in walk(path + os.sep, ""):
        changed = changed_at(os.path.join(path, key))
        if os.path.join(path, key) not in removed and changed is not None and changed < committed:
            raise JournalError(
                "a transaction sets a value where a directory is, and does not remove everything in it",
                store=base,
                got=os.path.join(path, key),
                hint="Move what is in the directory elsewhere, and open a node for writing, which completes the transaction",
            )
    remove_tree(path, base, durable=False)


def _sync_names(batch: BatchSync, base: str, paths: Iterable[str]) -> None:
    try:
        batch.sync([], folders_above(base, paths))
    except OSError as error:
        trouble = DurabilityError(
            "the transaction is committed, but a directory could not be synced",
            got=f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}",
            hint="The changes are visible now; whether they survive a power cut is unknown",
        )
        trouble.errno = error.errno
        raise trouble from error


def folders_above(base: str, paths: Iterable[str]) -> set[str]:
    """Return the directories of `paths`, and those above up to the root."""
    folders = {base.rstrip(os.sep)}
    for path in paths:
        folder = path.rpartition(os.sep)[0]
        while folder not in folders and len(folder) >= len(base):
            folders.add(folder)
            folder = folder.rpartition(os.sep)[0]
    return folders


def clear(base: str, keys: Iterable[str], identifier: str) -> None:
    """Remove pointers and marks of a transaction that has ended, and directories that are empty now."""
    paths = [path_of(base, key) for key in keys]
    locks = [os.path.join(folder, filelock.lock_name(name)) for folder, name in map(os.path.split, paths)]
    clear_known([*locks, *(base + name for name in MARKS)], (), (), identifier)
    folders = {folder for folder in folders_above(base, paths) if len(folder) >= len(base)}
    locks = [os.path.join(folder, name) for folder in folders for name in MARKS]
    clear_known(locks, [os.path.join(folder, JOURNAL) for folder in folders], folders, identifier)


def clear_known(locks: Iterable[str], pointers: Iterable[str], folders: Iterable[str], identifier: str) -> None:
    """Remove the marks in lock files, pointers, and those of `folders` that are empty now."""
    for path in (*pointers, *locks):
        remove_mark(path, identifier)
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def remove_mark(lock: str, identifier: str) -> None:
    """Remove a lock file with the mark of a transaction, or its pointer."""
    left = read_small(lock) or b""
    found = parse_pointer(left) if identifier.encode() in left else None
    if found is not None and found[0] == identifier:
        unlink(lock)


# -- files -----------------------------------------------------------------------------------------------------------------


def read_small(path: str) -> bytes | None:
    """Read a small file; ``None``: there is none, or it is a link or no regular file."""
    try:
        descriptor = os.open(path, _NO_LINKS)
    except ABSENT:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            return None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_NBYTES:
            return None
        return localfile.pread(descriptor, status.st_size, 0)  # fewer bytes of a lock file that its holder empties now
    finally:
        os.close(descriptor)


def unlink(path: str) -> None:
    with contextlib.suppress(*ABSENT):
        os.unlink(path)


def staged_path(path: str, identifier: str) -> str:
    """Return the path of the file that a transaction stages for the file at `path`."""
    folder, separator, name = path.rpartition(os.sep)
    return f"{folder}{separator}{filelock.temporary_name(name, identifier)}"


def path_of(base: str, key: str) -> str:
    """Return the path of a key's file."""
    return windows_path(base, key) if os.name == "nt" else base + key


def opened(folder: str, base: str, make: Callable[[], int], *, durable: bool) -> int:
    """Call `make`, which opens a file in `folder`; create `folder` when missing, also when other processes remove it."""
    for _ in range(_TRIES):
        try:
            return make()
        except FileNotFoundError:
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                make_directories(folder, base, durable=durable)
    return make()


def check_inside(base: str, folder: str, checked: set[str]) -> None:
    """Raise `StoreError` if a link leads out of the root: such files are not changed in a transaction."""
    if folder in checked:
        return
    checked.add(folder)
    if len(folder) > len(base):
        check_inside(base, os.path.dirname(folder), checked)
        if not os.path.islink(folder):
            return  # it is in its parent, which is inside
    root, real = os.path.realpath(base), os.path.realpath(folder)
    if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
        raise StoreError(
            "a link leads out of the root, and a transaction follows none",
            got=folder,
            hint="Open the directory that the link leads to as a store, or write without a transaction",
        )
