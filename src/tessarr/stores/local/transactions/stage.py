"""Stage values of a transaction in files beside their keys before it commits, so that they need not be kept in memory.

Only values of which the directory exists are staged here, and only while no snapshot lives for which the names in the directory
would have to be kept first. All others are staged by the commit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from tessarr.errors import ConflictError
from tessarr.stores.base import Version
from tessarr.stores.local.file import FileValue
from tessarr.stores.local.sync import BatchSync
from tessarr.stores.local.transactions.journal import version_in_journal
from tessarr.stores.local.transactions.keep import keep_names, living_above
from tessarr.stores.local.transactions.many import StagedFiles
from tessarr.stores.local.transactions.recovery import path_of, unlink
from tessarr.types import Buffer, ByteRange


class StagedValue:
    """A value in a staged file, as long as its transaction is open. Its length is in bytes."""

    __slots__ = ("_files", "_key", "_nbytes", "version")

    def __init__(self, files: StagedFiles, key: str, version: Version, nbytes: int) -> None:
        self._files, self._key, self._nbytes = files, key, nbytes
        self.version = version
        """Of the file, as in a journal."""

    def __len__(self) -> int:
        return self._nbytes

    def read(self, ranges: Sequence[ByteRange] | None = None) -> list[Buffer]:
        """Read the value, or ranges of it. Raises `ConflictError` if another process has removed the file."""
        path = self._files.path(self._key)
        found = FileValue.open(path)
        try:
            if found is None or version_in_journal(found.version) != self.version:
                raise ConflictError(
                    "a value that the transaction had staged was removed",
                    key=self._key,
                    got=path,
                    hint="Run the transaction again",
                )
            return [found.read(part) for part in ([ByteRange(0)] if ranges is None else ranges)]
        finally:
            if found is not None:
                found.close()


class Stage:
    """The staged values of one transaction of the directory `base`, which has a separator at its end and exists."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.batch = BatchSync(base)  # before the first file is written
        self.files = StagedFiles(base, os.urandom(6).hex())
        self.keys: set[str] = set()
        """The keys whose values were staged before the commit."""
        self.committed = False
        """Whether the staged files belong to a journal."""

    def files_below(self, path: str) -> StagedFiles | None:
        """Return where values of the array at `path` are staged; ``None``: a snapshot lives, for which names must be kept."""
        if not self.files.checks_links or living_above([path_of(self.base, path)]):
            return None
        return self.files

    def add(self, written: Sequence[tuple[str, tuple[Version, int] | None]]) -> dict[str, StagedValue | None]:
        """Record what was written for keys: version and bytes of a file; ``None``: nothing is to be stored."""
        files = self.files
        values = {key: None if file is None else StagedValue(files, key, *file) for key, file in written}
        self.keys.update([key for key, file in written if file is not None])
        return values

    def remove(self, keys: Iterable[str]) -> None:
        """Remove staged files."""
        for key in [*keys]:
            unlink(self.files.path(key))
            self.keys.discard(key)

    def discard(self) -> None:
        """Remove all staged files, unless the transaction is committed."""
        if self.keys and not self.committed:
            folders = sorted({os.path.dirname(path_of(self.base, key)) for key in self.keys})
            snapshots = living_above(folders)
            if snapshots:
                keep_names(snapshots, folders)
            self.remove(self.keys)
