r"""Store values in files of a directory. The key ``a/b`` is the file ``b`` in the directory ``a`` under the root.

- `get` of a directory is ``None``: a directory is not a value. `delete` of a directory does nothing: use `delete_prefix`.
- `set` writes a hidden temporary file in the same directory and renames it over the value: readers, other processes and
  crashes see the old value or the new one. ``durable=True`` syncs content and names too (`tessarr.stores.local.sync`).
- `lock` and conditional `set` exclude threads, processes and, where the file system has ``flock``, machines. Names and
  protocol are in `tessarr.stores.local.lock`.
- Directories are created when a value needs them, and removed when their last value is deleted. The root stays.
- Symbolic links are followed on reading, also out of the root: a user who can create links there can also write data. Setting
  or deleting the key of a link replaces or removes the link. Keys themselves never lead out of the root.
- On a case-insensitive file system (Windows, macOS) setting ``FOO`` beside ``foo`` is an error, not a merge.

Differences: zarr-python's ``LocalStore`` leaves empty directories and has neither locks nor conditional writes.

Source: Zarr v3 stores, "File system store"; OGC 21-050r1, "Directory Store".
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from tessarr.common.segments import Piece, Stored
from tessarr.errors import ConflictError, KeyValidationError, StoreError
from tessarr.stores.base import ANY, Any_, Fetch, Listing, LockContext, Version
from tessarr.stores.buffers import byte_view
from tessarr.stores.functions import children, fetch_one, unspliced
from tessarr.stores.local import file as localfile
from tessarr.stores.local import lock as filelock
from tessarr.stores.local import replace as localswap
from tessarr.stores.local import tree as localtree
from tessarr.stores.local.create import create
from tessarr.stores.local.file import ABSENT, FileValue, version_of
from tessarr.stores.local.sync import make_directories, sync_names
from tessarr.stores.local.transactional import Transactional
from tessarr.stores.local.trouble import trouble
from tessarr.stores.locks import KEYED_LOCKS, holding
from tessarr.stores.path import check_key, check_prefix, file_url, is_plain_key, windows_extended, windows_path
from tessarr.stores.protocols import Commit, ConditionalSet, Lock, PlainFiles, Snapshot, Update
from tessarr.types import AccessMode, Buffer, ByteRange

if TYPE_CHECKING:
    from pathlib import Path

_List = list
_WINDOWS = os.name == "nt"
_WHOLE = ByteRange(0)
_TRIES = 100
"""How often a directory that other processes keep removing is created again."""


class LocalStore(Transactional):
    """A directory of the local file system.

    `root` is created when the first value is set. `durable` syncs every change to the disk before the call
    returns. ``file_locks=False`` makes `lock` exclude only threads of this process, for file systems without ``flock``.

    >>> import tempfile
    >>> store = LocalStore(tempfile.mkdtemp())
    >>> store.set("a/b", b"1")
    >>> store.get("a/b"), store.get("a"), store.list_dir("").prefixes
    (b'1', None, ['a/'])
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        read_only: bool = False,
        durable: bool = False,
        file_locks: bool = True,
    ) -> None:
        self._root = os.path.abspath(os.fspath(root))
        base = windows_extended(self._root) if _WINDOWS else self._root
        self._base = base if base.endswith(os.sep) else base + os.sep
        self.read_only = read_only
        self.durable = durable
        self.file_locks = file_locks
        self._coarse_times: bool | None = None
        self._case_blind: bool | None = None
        """Whether the file system is case-insensitive; ``None`` until the first value is set."""

    @classmethod
    def open(cls, root: str | os.PathLike[str], *, read_only: bool = False, mode: AccessMode | None = None) -> Self:
        """Open a directory: for `mode` ``r`` and ``r+`` it must exist, ``w`` empties it, for ``w-`` it must not exist.

        Raises `FileNotFoundError` and `FileExistsError`.
        """
        store = cls(root, read_only=read_only or mode == "r")
        if mode in ("r", "r+") and not os.path.isdir(store._root):
            raise FileNotFoundError(f"no directory {store._root!r}")
        if mode == "w-" and os.path.lexists(store._root):
            raise FileExistsError(f"{store._root!r} exists")
        if mode == "w":
            store.clear()
        if mode in ("w", "w-", "a"):
            os.makedirs(store._root, exist_ok=True)
        return store

    @property
    def root(self) -> Path:
        """The absolute path of the directory."""
        from pathlib import Path

        return Path(self._root)

    @property
    def url(self) -> str:
        return file_url(self._root, windows=_WINDOWS)

    def has_ability(self, ability: type) -> bool:
        """Whether this directory has `ability`: see `file_locks` and `has_coarse_times`."""
        if ability is Lock:
            return self.file_locks
        if ability in (ConditionalSet, Update):
            return self._is_exact
        if ability is PlainFiles:
            return self._is_plain
        return ability not in (Commit, Snapshot) or (self._is_exact and self._is_plain)

    @property
    def _is_exact(self) -> bool:
        """Whether an update detects a concurrent plain `set` (`tessarr.stores.local.replace`)."""
        return self.file_locks and localswap.IS_EXACT and not self.has_coarse_times

    @property
    def has_coarse_times(self) -> bool:
        """Whether the file system rounds the times of files, so that two values of one key may have the same version.

        Detected by the times of the root, or of the first value that is set.
        """
        if self._coarse_times is None:
            self._coarse_times = localfile.has_coarse_times(self._root)
        return bool(self._coarse_times)

    @property
    def directory(self) -> str:
        """The root with a separator at its end, for code that reads and writes the files itself (`PlainFiles`)."""
        return self._base

    @property
    def _is_plain(self) -> bool:
        # A subclass defined elsewhere may store values in another form.
        return type(self).__module__.startswith("tessarr.stores.local.") and self._pending is None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._root == self._root and other.read_only == self.read_only

    def __hash__(self) -> int:
        return hash(self._root)

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        parts = self.get_ranges(key, (_WHOLE if byte_range is None else byte_range,))
        return None if parts is None else parts[0]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        """See `Store.get_ranges`: the file is opened once."""
        path = self._path(key)
        try:
            descriptor = self._open_value(path)
        except ABSENT:
            return None
        except OSError as error:
            if _WINDOWS and os.path.isdir(path):  # Windows cannot open a directory
                return None
            raise self._trouble("read", key, error) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return None
            size = status.st_size
            parts: _List[Buffer] = []
            # `ByteRange.bounds`, written out: this is the loop of a shard's read.
            for start, stop in ranges:
                if start < 0:
                    start, stop = max(0, size + start), size
                elif stop is None or stop > size:
                    stop = size
                nbytes = stop - start
                data = localfile.pread(descriptor, nbytes, start) if nbytes > 0 else b""
                parts.append(data if len(data) >= nbytes else localfile.rest(descriptor, data, start, nbytes))
            return parts
        except StoreError as error:
            raise error.at(store=self.url, key=key)  # noqa: B904 - the same error
        except OSError as error:
            raise self._trouble("read", key, error) from error
        finally:
            os.close(descriptor)

    def fetch(self, requests: Sequence[Fetch]) -> _List[_List[Buffer] | None]:
        """See `Store.fetch`: whole values that are small, as documents are, are read at once."""
        read = localfile.reader_of_many() if len(requests) > 1 and self._is_plain else None
        if read is None:
            return super().fetch(requests)
        return [
            fetch_one(self, request) if answer is False else answer
            for request, answer in zip(requests, read(self._base, requests, localfile.SMALL), strict=True)
        ]

    def exists(self, key: str) -> bool:
        return self._status(key) is not None

    def getsize(self, key: str) -> int | None:
        status = self._status(key)
        return None if status is None else status.st_size

    def version(self, key: str) -> Version | None:  # device:inode:mtime_ns:size
        status = self._status(key)
        return None if status is None else version_of(status)

    def _status(self, key: str) -> os.stat_result | None:
        """Return the status of a value's file; ``None`` when there is none."""
        try:
            status = self._stat_value(self._path(key))
        except ABSENT:
            return None
        except OSError as error:
            raise self._trouble("look at", key, error) from error
        return status if stat.S_ISREG(status.st_mode) else None

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        path = self._writable_path(key)
        if if_match is ANY:
            self._replace(key, path, [byte_view(value)])
            return None
        with self._hold(key, path):
            if self.version(key) != if_match or not self._replace(key, path, [byte_view(value)], over=if_match):
                present = self.version(key)
                raise ConflictError(
                    "the value has changed", store=self.url, key=key, expected=f"version {if_match}", got=present
                )
            return self.version(key)

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        path = self._writable_path(key)
        if self._is_plain and self.file_locks and not (self.durable or self._case_blind):
            done = create(path, self._base, value, probe=self._case_blind is None)
            if done is not None:
                created, kept_time = done
                if created:
                    self._case_blind = False
                self._coarse_times = self._coarse_times or not kept_time
                return created
        return super().set_if_not_exists(key, value)

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self.splice(key, unspliced(change))

    def splice(self, key: str, change: Callable[[Stored | None], Sequence[Piece] | None]) -> None:
        """See `Store.splice`: only the ranges that `change` requests are read; the kernel copies ranges that stay."""
        path = self._writable_path(key)
        with self._hold(key, path):
            done = False
            while not done:
                try:
                    stored = FileValue.open(path)
                except OSError as error:
                    raise self._trouble("read", key, error) from error
                try:
                    pieces = change(stored)
                    version = None if stored is None else stored.version
                    if pieces is not None:
                        done = self._replace(key, path, pieces, stored, over=version)
                    else:
                        done = self._remove(key, path, over=version)
                except StoreError as error:
                    raise error.at(store=self.url, key=key)  # noqa: B904 - the same error
                finally:
                    if stored is not None:
                        stored.close()

    def _replace(
        self,
        key: str,
        path: str,
        pieces: Sequence[Piece],
        source: FileValue | None = None,
        *,
        over: Version | None | Any_ = ANY,
    ) -> bool:
        """Replace a value's file by a new file of `pieces`, some of them ranges of `source`.

        Returns ``False``, having done nothing, if the present file does not have version `over`.
        """
        folder, _, name = path.rpartition(os.sep)
        temporary = f"{folder}{os.sep}{filelock.temporary_name(name)}"
        try:
            descriptor = self._opened(folder, lambda: os.open(temporary, localfile.CREATE, 0o666))
            try:
                if not localfile.write_value(descriptor, pieces, source, durable=self.durable):
                    self._coarse_times = True
                if self._case_blind is not False:
                    self._check_case(key, temporary)
                if not localswap.place(temporary, path, over, flock=self.file_locks):
                    os.unlink(temporary)
                    return False
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            if self.durable:
                sync_names(path, self._base, "the value is in place")
        except OSError as error:
            raise self._trouble("write", key, error) from error
        return True

    def _opened(self, folder: str, make: Callable[[], int]) -> int:
        """Call `make`, which opens a file in `folder`; create `folder` when missing, also when other processes remove it."""
        for _ in range(_TRIES):
            try:
                return make()
            except FileNotFoundError:
                self._make(folder)
        return make()

    def _make(self, folder: str) -> None:
        # Another process may remove an empty directory between two of these steps: then the caller retries. A file where
        # a directory should be is detected when the value is created.
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            make_directories(folder, self._base, durable=self.durable)

    def _check_case(self, key: str, probe: str) -> None:
        """Raise `StoreError` if a name on the path to `key` exists in another case, and `probe` shows that case is ignored."""
        if self._case_blind is None:
            self._case_blind = localtree.is_case_blind(probe)
        if self._case_blind:
            localtree.refuse_colliding(self._base, key, self.url)

    def lock(self, key: str) -> LockContext:
        """See `Store.lock`: threads, processes and, through shared file systems, machines."""
        return self._hold(key, self._lockable_path(key))

    @holding
    def _hold(self, key: str, path: str) -> Generator[filelock.Note | None, None, None]:
        folder, _, name = path.rpartition(os.sep)
        lock = f"{folder}{os.sep}{filelock.lock_name(name)}"
        with KEYED_LOCKS.hold(lock):
            if not self.file_locks:
                yield None
                return
            try:
                while True:
                    with filelock.held(lock, lambda: self._opened(folder, lambda: filelock.acquire(lock))) as note:
                        left, above = self._marks_at(path, note)
                        if not (left or above):
                            yield note
                            break
                    self._settle_marks(lock, left, above)
            except OSError as error:
                raise self._trouble("lock", key, error) from error
            finally:
                self._prune(key)

    # -- deleting ----------------------------------------------------------------------------------------------

    def delete(self, key: str) -> None:
        """See `Store.delete`. A directory of that name is not removed."""
        self._remove(key, self._writable_path(key))

    def _remove(self, key: str, path: str, *, over: Version | None | Any_ = ANY) -> bool:
        try:
            if not localswap.remove(path, over, flock=self.file_locks):
                return False
            if over is not None:
                self._prune(key)
                if self.durable:
                    sync_names(path, self._base, "the value is removed")
        except ABSENT:
            return True
        except OSError as error:
            if os.path.isdir(path) and not isinstance(error, StoreError):
                return True
            raise self._trouble("delete", key, error) from error
        return True

    def _prune(self, key: str) -> None:
        """Remove the directories on the path to `key` that are now empty."""
        folder = key.rpartition("/")[0]
        with contextlib.suppress(OSError):
            while folder:
                os.rmdir(self._path(folder))
                folder = folder.rpartition("/")[0]

    def delete_prefix(self, prefix: str) -> None:
        """See `Store.delete_prefix`: the directory is renamed to a hidden name, then removed."""
        self._check_writable(prefix)
        check_prefix(prefix)
        try:
            path = self._path(prefix[:-1]) if prefix else self._base
            with self._hold_tree(prefix, path):
                if not prefix:
                    localtree.clear_directory(self._base, durable=self.durable)
                    return
                removed = localtree.remove_tree(path, self._base, durable=self.durable)
            if removed:
                self._prune(prefix[:-1])
                if self.durable:  # the directories above, which may be removed as well
                    sync_names(path, self._base, "the directory is removed")
        except OSError as error:
            raise self._trouble("delete", prefix, error) from error

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        """See `Store.replace_prefix`: staged in a hidden directory, then swapped by renames; at the root, by a journal."""
        self._check_writable(prefix)
        check_prefix(prefix)
        below = {}
        for key, value in items.items():
            self._writable_path(key)
            if not key.startswith(prefix):
                raise KeyValidationError("the key is outside the prefix", key=key, expected=f"a key under {prefix!r}")
            below[key[len(prefix) :]] = value
        if not below:
            self.delete_prefix(prefix)
            return
        try:
            path = self._path(prefix[:-1]) if prefix else self._base
            with self._hold_tree(prefix, path) as held:
                if prefix:
                    localtree.replace_tree(path, self._base, below, durable=self.durable)
                elif held:
                    from tessarr.stores.local.transactions.root import replace_root

                    replace_root(path, below, durable=self.durable)
                else:
                    localtree.replace_children(path, below, durable=self.durable)
        except OSError as error:
            raise self._trouble("replace", prefix, error) from error

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        """See `Store.list`: lazily, one directory at a time."""
        check_prefix(prefix)
        return self._walk(prefix)

    def _walk(self, prefix: str) -> Iterator[str]:
        try:
            yield from self._with_pending(localtree.walk(self._base, prefix), prefix)
        except OSError as error:
            raise self._trouble("list", prefix, error) from error

    def list_dir(self, prefix: str) -> Listing:
        """See `Store.list_dir`: reads one directory."""
        check_prefix(prefix)
        if self._pending is not None:
            return children(self._walk(prefix), prefix)
        try:
            files, folders = localtree.children(self._path(prefix[:-1]) if prefix else self._base)
        except OSError as error:
            raise self._trouble("list", prefix, error) from error
        return Listing(sorted(prefix + name for name in files), sorted(f"{prefix}{name}/" for name in folders))

    # -- paths and errors ------------------------------------------------------------------------------------------

    def _path(self, key: str) -> str:
        """Return the path of a value's file. Raises `KeyValidationError` for a key that would lead out of the root."""
        if not is_plain_key(key):
            check_key(key)
        return windows_path(self._base, key) if _WINDOWS else self._base + key

    def _writable_path(self, key: str) -> str:
        """Return the path of a value's file as `_path` does, for a key to be written. Raises also for names of hidden files."""
        self._check_writable(key)
        path = self._path(key)
        if ".tessarr-" in key:
            for name in key.split("/"):
                if filelock.is_hidden(name):
                    raise KeyValidationError(f"{name!r} is a name of temporary files and lock files", key=key)
        return path

    def _trouble(self, what: str, key: str, error: OSError) -> StoreError:
        return trouble(what, self.url, key, error)
