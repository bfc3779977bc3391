"""A snapshot of a directory: its files as they were at one moment (`tessarr.stores.local.transactions.keep`)."""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Iterator, Sequence
from typing import NoReturn

from tessarr.errors import SnapshotChangedError, UnsupportedOperationError
from tessarr.stores.base import ConditionalStore, Listing, Version
from tessarr.stores.local.file import ABSENT, READ, FileValue, version_of
from tessarr.stores.local.transactions import keep
from tessarr.stores.local.transactions.journal import Journal, parse, version_in_journal
from tessarr.stores.local.transactions.recovery import find, path_of, settled
from tessarr.stores.local.trouble import trouble
from tessarr.stores.path import check_key, check_prefix
from tessarr.stores.protocols import JOURNAL
from tessarr.types import Buffer, ByteRange

_List = list
_WHOLE = ByteRange(0)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def take(base: str, url: str) -> LocalSnapshot:
    """Begin a snapshot of the directory `base`. Raises `UnsupportedOperationError` where nothing may be written there."""
    try:
        os.stat(base)
        keep.keep_names(keep.living_above([base]), [base])
        with settled(base, durable=False):
            registered = keep.register(base)
    except OSError as error:
        if error.errno in _REFUSED:
            raise UnsupportedOperationError(
                "nothing can be kept for a snapshot here",
                store=url,
                got=error.strerror,
                hint="`tessarr.snapshot` takes one that raises an error where a value has changed",
            ) from error
        raise trouble("take a snapshot of", url, "", error) from error
    return LocalSnapshot(registered, url)


class LocalSnapshot(ConditionalStore):
    """The values of a directory at one moment. Read-only; `close` ends it."""

    def __init__(self, registered: keep.Registered, url: str) -> None:
        self.read_only = True
        self._url = url
        self._living = registered.living
        self._base = registered.living.base
        self._looked: set[str] = set()
        self._end = weakref.finalize(self, _end, registered, os.getpid())

    @property
    def url(self) -> str:
        return self._url

    def __eq__(self, other: object) -> bool:
        return other is self

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[object, ...]:
        raise UnsupportedOperationError("a snapshot cannot be pickled: its process keeps its values", store=self.url)

    def with_read_only(self, read_only: bool = True) -> LocalSnapshot:
        """Return this store. Raises `ValueError` for ``False``."""
        if not read_only:
            raise ValueError("a snapshot is read-only")
        return self

    def close(self) -> None:
        """End the snapshot: what was kept for it is removed."""
        self._end()

    # -- reading -----------------------------------------------------------------------------------------------

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        parts = self.get_ranges(key, (_WHOLE if byte_range is None else byte_range,))
        return None if parts is None else parts[0]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        value = self._value(key)
        if value is None:
            return None
        try:
            parts = [value.read(byte_range) for byte_range in ranges]
            # A program that writes files in place may have changed it meanwhile.
            if version_of(os.fstat(value.descriptor)) != value.version:
                self._raise_changed(key)
            return parts
        finally:
            value.close()

    def exists(self, key: str) -> bool:
        return self._status(key) is not None

    def getsize(self, key: str) -> int | None:
        status = self._status(key)
        return None if status is None else status.st_size

    def version(self, key: str) -> Version | None:
        status = self._status(key)
        return None if status is None else version_of(status)

    def _status(self, key: str) -> os.stat_result | None:
        value = self._value(key)
        if value is None:
            return None
        try:
            return os.fstat(value.descriptor)
        finally:
            value.close()

    def _value(self, key: str) -> FileValue | None:
        """Open the file that the key had; ``None``: there was none."""
        check_key(key)
        self._require_open()
        path = path_of(self._base, key)
        try:
            self._look_for_journals(os.path.dirname(path))
            found = self._open(path)
        except keep.ChangedError:
            self._raise_changed(key)
        except OSError as error:
            raise trouble("read", self.url, key, error) from error
        return None if found is None else FileValue(*found)

    def _require_open(self) -> None:
        if not self._end.alive:
            raise ValueError("the snapshot has ended")

    def _open(self, path: str) -> tuple[int, os.stat_result] | None:
        try:
            return keep.open_at(self._living, path)
        except keep.ChangedError:
            return self._open_before_replacement(path) or keep.open_at(self._living, path)

    def _open_before_replacement(self, path: str) -> tuple[int, os.stat_result] | None:
        """Open a file that a committed transaction is about to replace, and has changed already by a link to keep it."""
        folder = os.path.dirname(path)
        while (found := find(folder)) is None:
            folder = os.path.dirname(folder)
            if len(folder) + 1 < len(self._base):
                return None
        journal = parse(found[1])
        for step in journal.steps if isinstance(journal, Journal) else ():
            was_old = step.changed is not None and step.changed < self._living.moment
            if was_old and path_of(found[0], step.key) == path:
                try:
                    descriptor = os.open(path, READ)
                except ABSENT:
                    return None  # removed now
                status = os.fstat(descriptor)
                if version_in_journal(version_of(status)) == step.old:
                    return descriptor, status
                os.close(descriptor)
        return None

    def _look_for_journals(self, folder: str) -> None:
        """Raise `SnapshotChangedError` for a transaction below the root that was incomplete when the snapshot was taken."""
        while folder not in self._looked and len(folder) >= len(self._base):
            found = find(folder)
            if (
                found is not None
                and found[0].startswith(self._base)
                and os.stat(found[0] + JOURNAL).st_ctime_ns < self._living.moment
            ):
                raise SnapshotChangedError(
                    "a transaction of a process that ended was not complete when the snapshot was taken",
                    store=self.url,
                    got=found[0],
                    hint="Open a node there for writing, which completes it, and take another snapshot",
                )
            self._looked.add(folder)
            folder = os.path.dirname(folder)

    def _raise_changed(self, key: str) -> NoReturn:
        raise SnapshotChangedError(
            "the value was changed after the snapshot was taken, and was not kept",
            store=self.url,
            key=key,
            hint="Take another snapshot. Writers keep what they replace for snapshots only in transactions",
        ) from None

    # -- listing -----------------------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        pending = [prefix]
        while pending:
            here = pending.pop()
            files, folders = self._children(here)
            yield from (here + name for name in files)
            pending += [f"{here}{name}/" for name in folders]

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        files, folders = self._children(prefix)
        return Listing(sorted(prefix + name for name in files), sorted(f"{prefix}{name}/" for name in folders))

    def _children(self, prefix: str) -> tuple[_List[str], _List[str]]:
        self._require_open()
        try:
            return keep.children_at(self._living, path_of(self._base, prefix))
        except keep.ChangedError:
            self._raise_changed(prefix)


def _end(registered: keep.Registered, process: int) -> None:
    if process == os.getpid():
        registered.end()
