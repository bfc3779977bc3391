"""Keep what transactions replace, as long as a snapshot may read it.

A snapshot of the directory ``base`` (`tessarr.stores.local.transactions.local_snapshot`) has in ``base/.tessarr-snapshot``:

- ``{id}.lock``: a file that it locks by ``flock`` while it lives, with its moment. A file that is not locked is of a process
  that ended; the next process that finds it removes what belongs to it.
- ``{id}/{digest of a key}``: a hard link to the file that the key had, made by a transaction before it replaces it.
- ``{id}/{digest of a directory}.names``: the names in a directory, listed by a transaction before it changes the directory.

The *moment* is a time of the file system's clock: what was changed before it has an earlier time, and nothing that is changed
after it has. So a snapshot knows of every file and directory whether it is still what it was, also where nothing was kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tessarr.stores.local import lock as filelock
from tessarr.stores.local import tree as localtree
from tessarr.stores.local.file import ABSENT, CREATE, READ, version_of
from tessarr.stores.local.file import write as write_bytes
from tessarr.stores.local.lock import SNAPSHOT_SUFFIX
from tessarr.stores.local.transactions.journal import Step, version_in_journal

FOLDER = SNAPSHOT_SUFFIX
_LONGEST_TICK_S = 5.0
_TRIES = 100
_EFFECTIVE = hasattr(os, "geteuid")


class Living(NamedTuple):
    """A snapshot whose process lives."""

    base: str
    """The directory it is of, with a separator at its end."""
    folder: str
    """Where values are kept for it."""
    moment: int
    """In nanoseconds."""
    directory: int | None = None
    """Of a snapshot of this process: a descriptor of the directory, which a transaction may exchange with another one."""

    @property
    def is_exchanged(self) -> bool:
        """Whether the path leads to another directory now: then only what was kept is of the moment."""
        return self.directory is not None and not filelock.is_same_file(self.base, self.directory)

    def kept(self, path: str) -> str:
        """Return where the file at `path` is kept."""
        return os.path.join(self.folder, _digest(path[len(self.base) :]))

    def names(self, folder: str) -> str:
        """Return where the names in the directory at `folder`, which has no separator at its end, are kept."""
        return os.path.join(self.folder, _digest(folder[len(self.base) :]) + ".names")


def _digest(inside: str) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(inside.strip(os.sep))).hexdigest()[:32]


# -- for a snapshot ----------------------------------------------------------------------------------------------------------


class Registered(NamedTuple):
    """What a snapshot holds until it ends."""

    living: Living
    lock: str
    descriptor: int

    def end(self) -> None:
        """Release the lock, and remove what was kept."""
        _forget(self.living.folder, self.lock)
        filelock.unlock(self.descriptor)
        if self.living.directory is not None:
            os.close(self.living.directory)


def register(base: str) -> Registered:
    """Begin a snapshot of the directory `base`, whose lock of transactions is held. Raises `OSError`."""
    top = base + FOLDER
    identifier = os.urandom(6).hex()
    folder, lock = os.path.join(top, identifier), os.path.join(top, f"{identifier}.lock")
    temporary = f"{folder}.new"  # it has its name when it is locked, so that no process takes it for one that ended
    for _ in range(_TRIES):
        with contextlib.suppress(FileExistsError):
            os.mkdir(top)
        try:
            descriptor = filelock.acquire(temporary)
            break
        except FileNotFoundError:
            continue  # another process has removed the empty directory
    else:
        raise FileNotFoundError(2, "other processes keep removing the directory of snapshots", top)
    directory = None
    try:
        directory = os.open(base, READ)
        os.mkdir(folder)
        for _ in range(_TRIES):
            living = Living(base, folder, _tick(temporary), directory)
            keep_names([living], [base])
            if os.path.lexists(living.names(base.rstrip(os.sep))):
                break  # else a transaction that waits for the lock has staged a file there meanwhile
        write_bytes(descriptor, str(living.moment).encode())
        os.rename(temporary, lock)
    except BaseException:
        _forget(folder, temporary)
        filelock.unlock(descriptor)
        if directory is not None:
            os.close(directory)
        raise
    return Registered(living, lock, descriptor)


def _tick(path: str) -> int:
    """Wait until the clock of the file system advances. Returns its time: all that was changed before has an earlier one."""
    os.utime(path)
    first = os.stat(path).st_ctime_ns
    deadline = time.monotonic() + _LONGEST_TICK_S
    while time.monotonic() < deadline:
        time.sleep(0.001)
        os.utime(path)
        now = os.stat(path).st_ctime_ns
        if now > first:
            return now
    raise OSError(5, "the clock of the file system stands still", path)


# -- for a transaction -------------------------------------------------------------------------------------------------------


def living_above(folders: Iterable[str]) -> list[Living]:
    """Find the snapshots of `folders`, and of all directories above them. Removes those whose process ended."""
    seen: set[str] = set()
    found: list[Living] = []
    for folder in folders:
        here = folder.rstrip(os.sep)
        while here not in seen:
            seen.add(here)
            if os.access(f"{here}{os.sep}{FOLDER}", os.F_OK, effective_ids=_EFFECTIVE):  # quicker than an exception
                found += _living_in(here + os.sep)
            here = os.path.dirname(here).rstrip(os.sep)
    return found


def _living_in(base: str) -> Iterator[Living]:
    top = base + FOLDER
    try:
        names = os.listdir(top)
    except OSError:
        return
    for name in names:
        identifier, _, suffix = name.rpartition(".")
        if suffix not in ("lock", "new"):
            continue
        lock, folder = os.path.join(top, name), os.path.join(top, identifier)
        try:
            filelock.unlock(filelock.acquire(lock, wait=False, flags=READ))
        except BlockingIOError:
            with contextlib.suppress(OSError, ValueError), open(lock, "rb") as file:
                yield Living(base, folder, int(file.read(32)))
        except OSError:
            continue  # it has ended, or this process may not look: then nothing is kept, which the snapshot notices
        else:
            _forget(folder, lock)


def _forget(folder: str, lock: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(lock)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(lock))


def keep_names(snapshots: Iterable[Living], folders: Iterable[str]) -> None:
    """Keep the names in `folders`, and in the directories above them, before they are changed."""
    every: dict[str, None] = {}
    for folder in folders:
        here = folder.rstrip(os.sep)
        while here and here not in every:
            every[here] = None
            here = os.path.dirname(here)
    for snapshot in snapshots:
        for folder in every:
            if (folder + os.sep).startswith(snapshot.base) and not os.path.lexists(snapshot.names(folder)):
                names = names_at(folder, snapshot.moment)
                if names is not None:
                    _write_once(snapshot.names(folder), json.dumps(names).encode())


def names_at(folder: str, moment: int) -> tuple[list[str], list[str]] | None:
    """List the files and directories in `folder`, if it is still as it was at `moment`; ``None``: it may have changed."""
    try:
        if os.stat(folder).st_mtime_ns >= moment:
            return None
        found = localtree.children(folder)
        return found if os.stat(folder).st_mtime_ns < moment else None
    except OSError:
        return None


def _write_once(path: str, data: bytes) -> None:
    """Write a file, unless there is one. The snapshot notices a failure; the transaction goes on."""
    temporary = f"{path}.{os.urandom(6).hex()}"
    with contextlib.suppress(OSError):
        descriptor = os.open(temporary, CREATE, 0o666)
        try:
            write_bytes(descriptor, data)
        finally:
            os.close(descriptor)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def keep_values(snapshots: Iterable[Living], committed: int, steps: Iterable[tuple[str, Step]]) -> None:
    """Keep the files that a journal replaces or removes (path, step). `committed`: when the journal was renamed into place.

    A snapshot that is younger than the journal sees its new values. A file that was written after the moment of a snapshot,
    outside transactions, is not kept for it.
    """
    older = [snapshot for snapshot in snapshots if snapshot.moment <= committed]
    for path, step in steps if older else ():
        if step.old is None:
            continue
        changed = changed_at(path) if step.changed is None else step.changed
        if changed is None:
            continue
        for snapshot in older:
            if changed < snapshot.moment and path.startswith(snapshot.base):
                _keep(path, step.old, snapshot.kept(path))


def changed_at(path: str) -> int | None:
    """Return when the file at `path` was changed; a link to it, by which it is kept, is a change too."""
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return None


def _keep(path: str, version: str, kept: str) -> None:
    temporary = f"{kept}.{os.urandom(6).hex()}"
    with contextlib.suppress(OSError):  # no links here, too many, another file system: the snapshot notices
        os.link(path, temporary)
        if version_in_journal(version_of(os.stat(temporary))) == version:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, kept)
    with contextlib.suppress(OSError):
        os.unlink(temporary)


# -- reading -----------------------------------------------------------------------------------------------------------------


def open_at(snapshot: Living, path: str) -> tuple[int, os.stat_result] | None:
    """Open the file that was at `path` at the moment of the snapshot; ``None``: there was none. Raises `OSError`."""
    for _ in range(2):  # a transaction keeps a file before it replaces it: then it is found in the second round
        for where, is_kept in ((snapshot.kept(path), True), (path, False)):
            try:
                descriptor = os.open(where, READ)
            except ABSENT:
                continue
            status = os.fstat(descriptor)
            is_old = status.st_ctime_ns < snapshot.moment and not snapshot.is_exchanged
            if is_kept or (is_old and stat.S_ISREG(status.st_mode)):
                return descriptor, status
            os.close(descriptor)
        if was_absent(snapshot, path):
            return None
    raise ChangedError(path)


class ChangedError(OSError):
    """A file was changed after the moment of a snapshot, and the old one was not kept."""


def was_absent(snapshot: Living, path: str) -> bool:
    """Whether there was certainly nothing at `path` at the moment of the snapshot."""
    is_file = True
    while len(path) > len(snapshot.base):
        folder, name = os.path.split(path)
        kept = _kept_names(snapshot, folder)
        if kept is not None:
            return name not in kept[0 if is_file else 1]
        is_there = os.path.isfile if is_file else os.path.isdir
        with contextlib.suppress(OSError):
            is_old = not is_there(path) and os.stat(folder).st_mtime_ns < snapshot.moment
            if is_old and not snapshot.is_exchanged:
                return True
        path, is_file = folder, False
    return False


def _kept_names(snapshot: Living, folder: str) -> tuple[list[str], list[str]] | None:
    try:
        with open(snapshot.names(folder), "rb") as file:
            files, folders = json.load(file)
            return files, folders
    except (OSError, ValueError):
        return None


def children_at(snapshot: Living, folder: str) -> tuple[list[str], list[str]]:
    """List the files and directories that were in `folder` at the moment of the snapshot. Raises `ChangedError`."""
    folder = folder.rstrip(os.sep)
    for _ in range(2):
        kept = _kept_names(snapshot, folder)
        found = kept or names_at(folder, snapshot.moment)
        if found is not None and (kept or not snapshot.is_exchanged):
            return found
        if was_absent(snapshot, folder):
            return [], []
    raise ChangedError(folder)
