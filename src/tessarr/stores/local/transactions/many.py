"""Stage, compare and rename the files of a transaction by a few calls of the Rust module.

What a call cannot do is left to the caller, which does it file by file and says why it fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tessarr.common import extension
from tessarr.stores.base import Version
from tessarr.stores.local.file import version_at
from tessarr.stores.local.lock import lock_name, temporary_name

if TYPE_CHECKING:
    from tessarr import _native


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

    def locked(self, keys: Sequence[str]) -> Sequence[str]:
        """Return the keys that have a lock file."""
        found = None if self.native is None else self.native.locked(keys)
        return [key for key in keys if os.path.lexists(self._beside(key, lock_name))] if found is None else found

    def versions(self, keys: Sequence[str]) -> list[Version | None]:
        """Return the versions of values; ``None`` for a key without a value."""
        return [version_at(self.root + key) for key in keys] if self.native is None else self.native.versions(keys)

    def changed(self, staged: Sequence[tuple[str, str]]) -> Sequence[str]:
        """Return the keys whose staged file does not have the version beside them."""
        found = None if self.native is None else self.native.changed(staged)
        if found is not None:
            return found
        return [key for key, version in staged if (version_at(self.path(key)) or "").partition(":")[2] != version]

    def place(self, steps: Sequence[tuple[str, str | None]]) -> bool:
        """Rename staged files over values, in any order: (key, version of the value without the device).

        Returns whether all were renamed. If not, some may have been: another version, or a failure, prevented one.
        """
        return self.native is not None and self.native.place(steps)

    def path(self, key: str) -> str:
        """Return the path of the staged file of a key."""
        return self._beside(key, lambda name: temporary_name(name, self.id))

    def _beside(self, key: str, name: Callable[[str], str]) -> str:
        folder, separator, last = (self.root + key).rpartition(os.sep)
        return f"{folder}{separator}{name(last)}"
