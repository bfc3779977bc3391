"""Stage, compare and rename the files of a transaction by a few calls of the Rust module.

What a call cannot do is left to the caller, which does it file by file and says why it fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tessarr.common import extension
from tessarr.stores.base import Version
from tessarr.stores.local.file import version_at
from tessarr.stores.local.lock import lock_name, temporary_name

if TYPE_CHECKING:
    from tessarr import _native


class Compared(NamedTuple):
    """What there is for keys."""

    versions: list[Version | None]
    """Of the values; ``None`` for a key without a value."""
    locked: list[str]
    """The keys that have a lock file."""
    changed: list[str]
    """The keys whose staged file has another version, or is missing."""


class StagedFiles:
    """The files that the transaction `id` stages for keys below the directory `root`, which has a separator at its end.

    Raises `OSError`. Versions of staged files are without the device, as in a journal.
    """

    def __init__(self, root: str, identifier: str) -> None:
        module = extension.module()
        self.root, self.id = root, identifier
        self.native: _native.StagedFiles | None = None if module is None else module.StagedFiles(root, identifier)
        self.checks_links: bool = self.native is not None and self.native.CHECKS_LINKS
        """Whether `write` writes nothing where a link leads out of the root."""

    def write(self, values: Sequence[tuple[str, bytes]]) -> list[str] | None:
        """Write files for keys. Returns their versions; ``None``: none was written."""
        return None if self.native is None else self.native.write(values)

    def compare(self, keys: Sequence[tuple[str, str | None]], locks: int) -> Compared:
        """Compare keys (key, version of its staged file; ``None``: nothing is staged). `locks`: how many may have lock files.

        The lock file of a key is looked for before its version is.
        """
        found = None if self.native is None else self.native.compare(keys, locks)
        if found is not None:
            return Compared(*found)
        locked = [key for key, _ in keys[:locks] if os.path.lexists(self._beside(key, lock_name))]
        versions = [version_at(self.root + key) for key, _ in keys]
        changed = [key for key, staged in keys if staged is not None and self._staged_version(key) != staged]
        return Compared(versions, locked, changed)

    def _staged_version(self, key: str) -> str:
        return (version_at(self.path(key)) or "").partition(":")[2]

    def place(self, steps: Sequence[tuple[str, str | None]]) -> bool:
        """Rename staged files over values, in any order: (key, version of the value without the device).

        Returns whether all were renamed. If not, some may have been: another version, or a failure, prevented one. Files that
        were replaced stay open, as long as these are few, until this object is dropped: then an idle thread frees them.
        """
        return self.native is not None and self.native.place(steps)

    def path(self, key: str) -> str:
        """Return the path of the staged file of a key."""
        return self._beside(key, lambda name: temporary_name(name, self.id))

    def _beside(self, key: str, name: Callable[[str], str]) -> str:
        folder, separator, last = (self.root + key).rpartition(os.sep)
        return f"{folder}{separator}{name(last)}"
