"""The second tree of a swap: beside the root, of hard links to what stays and of the values that a transaction sets.

No program knows the tree before it is exchanged with the root. `SecondTree.link` may be called again: it links what was changed
in the root since, and unlinks what was removed there. Temporary files of other writers are linked too, so that these may rename
them when their path leads to the second tree.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tessarr.errors import UnsupportedOperationError
from tessarr.stores.buffers import byte_view
from tessarr.stores.local import file as localfile
from tessarr.stores.local import lock as filelock
from tessarr.stores.local.file import ABSENT, version_of
from tessarr.stores.local.transactions.journal import DOCUMENTS, Step, version_in_journal
from tessarr.stores.path import is_unicode

if TYPE_CHECKING:
    from tessarr.types import Buffer

_NOT_LINKED = (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors of a file that cannot have a second name: by the file system, or because it is of another user."""


class SecondTree:
    """The tree at `path` for the directory `base`, which has a separator at its end.

    `own`: what the transaction changes, key → new value; ``None``: removed.
    """

    def __init__(self, base: str, path: str, url: str, own: Mapping[str, Buffer | None]) -> None:
        self.base, self.path, self._url = base, path + os.sep, url
        self._own = own
        self.versions: dict[str, str | None] = dict.fromkeys(own)
        """The keys that the transaction changes → version in the second tree."""
        self._linked: dict[str, str] = {}
        """What is linked, by its path below the root → the version that was linked."""
        self.folders: set[str] = set()
        """The directories below the root, with a separator at the end; the root is ``""``."""
        self.nodes: set[str] = set()
        """Those of `folders` with a document."""
        self.locks: list[str] = []
        """The lock files that were found last."""
        self.snapshots: list[str] = []
        """The directories of snapshots that were found last."""

    # -- linking -------------------------------------------------------------------------------------------------------

    def link(self) -> int:
        """Link what is in the root. Returns how many files and directories were not there before, or were others.

        Raises `UnsupportedOperationError` for what cannot be linked, `OSError`.
        """
        self.locks, self.snapshots = [], []
        files: set[str] = set()
        folders: set[str] = set()
        pending, count = [""], 0
        while pending:
            inside = pending.pop()
            folders.add(inside)
            count += self._make(inside)
            for entry in _entries(self.base + inside):
                path = inside + entry.name
                if entry.name.endswith(filelock.LOCK_SUFFIX):
                    self.locks.append(path)
                elif entry.name == filelock.SNAPSHOT_SUFFIX:
                    self.snapshots.append(path)
                elif entry.is_dir(follow_symlinks=False):
                    if not filelock.is_hidden(entry.name):  # a tree that is being removed, or was not put in place
                        self._check_name(path)
                        pending.append(f"{path}{os.sep}")
                elif path not in self._own and entry.name != filelock.JOURNAL:
                    self._check_name(path)
                    files.add(path)
                    count += self._link(path, entry)
        return count + self._unlink(files, folders)

    def _make(self, inside: str) -> bool:
        if inside in self.folders:
            return False
        os.makedirs(self.path + inside, exist_ok=True)
        _copy_rights(self.base + inside, self.path + inside)
        self.folders.add(inside)
        return True

    def _link(self, path: str, entry: os.DirEntry[str]) -> bool:
        """Link a file, unless it is linked; return whether it was not."""
        try:
            status = entry.stat(follow_symlinks=False)
            if self._linked.get(path) == version_of(status):
                return False
            if not entry.is_file(follow_symlinks=False):
                raise self._refusal(path, "a link or a special file")
            if path in self._linked:
                os.unlink(self.path + path)
            os.link(self.base + path, self.path + path, follow_symlinks=False)
        except ABSENT:
            return True  # it is gone, or its directory is: seen when it is looked at again
        except OSError as error:
            if error.errno in _NOT_LINKED:
                raise self._refusal(path, error.strerror) from error
            raise
        if os.path.basename(path) in DOCUMENTS:
            self.nodes.add(path[: -len(os.path.basename(path))])
        self._linked[path] = version_of(os.lstat(self.path + path))
        return True

    def _unlink(self, files: set[str], folders: set[str]) -> int:
        """Remove what is not in the root any more. Returns how many it were."""
        gone = [path for path in self._linked if path not in files]
        for path in gone:
            del self._linked[path]
            with contextlib.suppress(*ABSENT):
                os.unlink(self.path + path)
        empty = sorted(self.folders - folders, key=len, reverse=True)
        for inside in empty:
            self.folders.discard(inside)
            self.nodes.discard(inside)
            with contextlib.suppress(OSError):  # the transaction sets a value there
                os.rmdir(self.path + inside)
        return len(gone) + len(empty)

    def _check_name(self, path: str) -> None:
        if not is_unicode(path):
            raise self._refusal(path.encode(errors="replace").decode(), "a name that is not Unicode")

    def _refusal(self, path: str, got: str | None) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            "a transaction of mode 'swap' cannot link everything in the directory",
            store=self._url,
            key=path.replace(os.sep, "/"),
            got=got,
            hint="Use mode='journal'",
        )

    # -- values ----------------------------------------------------------------------------------------------------------

    def write(self) -> list[str]:
        """Write the values of the transaction, after the first call of `link`. Returns the paths of the files."""
        paths = []
        for key, value in self._own.items():
            if value is None:
                continue
            path = self.path + key
            inside = key.rpartition("/")[0]
            os.makedirs(self.path + inside, exist_ok=True)
            self._remove_empty(path)
            localfile.write_value(os.open(path, localfile.CREATE, 0o666), [byte_view(value)], durable=False)
            self.versions[key] = version_of(os.lstat(path))
            paths.append(path)
        return paths

    def _remove_empty(self, path: str) -> None:
        """Remove a directory where the transaction has removed every value. Raises `OSError` where there is another one."""
        if os.path.isdir(path):
            for folder, _, _ in os.walk(path, topdown=False):
                os.rmdir(folder)

    def prune(self) -> None:
        """Remove the directories that are empty now, of keys that the transaction removes."""
        for key in (key for key, version in self.versions.items() if version is None):
            folder = os.path.dirname(key)
            with contextlib.suppress(OSError):
                while folder:
                    os.rmdir(self.path + folder)
                    self.folders.discard(folder + os.sep)
                    folder = os.path.dirname(folder)

    def link_snapshots(self) -> None:
        """Link what is kept for living snapshots, and their lock files, which stay locked."""
        for top in self.snapshots:
            for folder, _, names in os.walk(self.base + top):
                target = self.path + folder[len(self.base) :]
                os.makedirs(target, exist_ok=True)
                for name in names:
                    with contextlib.suppress(FileNotFoundError, FileExistsError):
                        os.link(os.path.join(folder, name), os.path.join(target, name))

    def keys(self) -> Iterator[str]:
        """List the values of the second tree."""
        yield from (path for path in self._linked if not filelock.is_hidden(os.path.basename(path)))
        yield from (key for key, version in self.versions.items() if version is not None)

    def steps(self, before: Mapping[str, str | None]) -> list[Step]:
        """Return what a late write is compared with. `before`: keys of the transaction → version in the root."""
        linked = ((path, version_in_journal(version)) for path, version in self._linked.items())
        return [
            *(
                Step(path, version, version)
                for path, version in linked
                if not filelock.is_hidden(os.path.basename(path))
            ),
            *(
                Step(key, version_in_journal(old), version_in_journal(self.versions[key]))
                for key, old in before.items()
            ),
        ]


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """List a directory; nothing, if it is gone."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except ABSENT:
        return


def _copy_rights(source: str, target: str) -> None:
    """Give a new directory the owner, the permissions and the extended attributes of another one."""
    import shutil

    with contextlib.suppress(*ABSENT):
        status = os.stat(source)
        if (own := os.stat(target)).st_uid != status.st_uid or own.st_gid != status.st_gid:
            os.chown(target, status.st_uid, status.st_gid)
        shutil.copystat(source, target)
