"""Stage, compare and rename the files of a transaction by a few calls of the Rust module.

What a call cannot do is left to the caller, which does it file by file and says why it fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, overload

from tessarr.common import extension
from tessarr.stores.base import Version
from tessarr.stores.local.file import version_at
from tessarr.stores.local.lock import lock_name, temporary_name
from tessarr.stores.local.transactions.journal import Step, version_in_journal

if TYPE_CHECKING:
    from tessarr import _native


class Compared:
    """What there was for keys when they were compared."""

    def __init__(self, found: _native.ComparedFiles | _Found) -> None:
        self.native = None if isinstance(found, _Found) else found
        self.locked: list[str] = found.locked
        """The keys that have a lock file."""
        self.changed: list[str] = found.changed
        """The keys whose staged file has another version, or is missing."""
        self.version: Callable[[int], Version | None] = found.version
        """Returns the version of the value of a key by its number; ``None``: no value."""

    def lines(self, total: int) -> bytes | None:
        """Return the lines of a journal that has the first `total` keys; ``None``: make them from its steps."""
        return None if self.native is None else self.native.lines(total)


class _Found(NamedTuple):
    versions: list[Version | None]
    locked: list[str]
    changed: list[str]

    def version(self, number: int) -> Version | None:
        return self.versions[number]


class ComparedSteps(Sequence[Step]):
    """The steps of a journal for keys that were compared: each is made when one is looked at."""

    def __init__(self, staged: Mapping[str, str | None], compared: Compared) -> None:
        self.staged, self.compared = staged, compared
        """Key → version of the staged file (``None``: the key is removed): the first keys of `compared`."""

    @cached_property
    def _made(self) -> list[Step]:
        version = self.compared.version
        return [Step(key, version_in_journal(version(n)), new) for n, (key, new) in enumerate(self.staged.items())]

    def lines(self) -> bytes | None:
        """Return the lines of the journal; ``None``: make them from the steps."""
        return self.compared.lines(len(self.staged))

    def __len__(self) -> int:
        return len(self.staged)

    @overload
    def __getitem__(self, number: int) -> Step: ...
    @overload
    def __getitem__(self, number: slice) -> list[Step]: ...
    def __getitem__(self, number: int | slice) -> Step | list[Step]:
        return self._made[number]


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
            return Compared(found)
        locked = [key for key, _ in keys[:locks] if os.path.lexists(self._beside(key, lock_name))]
        versions = [version_at(self.root + key) for key, _ in keys]
        changed = [key for key, staged in keys if staged is not None and self._staged_version(key) != staged]
        return Compared(_Found(versions, locked, changed))

    def _staged_version(self, key: str) -> str:
        return (version_at(self.path(key)) or "").partition(":")[2]

    def place(self, compared: Compared, first: int, stop: int) -> bool:
        """Rename the staged files of the keys `first` to `stop` over their values, in any order.

        Returns whether all were renamed. If not, some may have been: another version than the compared one, or a failure,
        prevented one. Files that were replaced stay open, as long as these are few, until this object is dropped: then an idle
        thread frees them.
        """
        return (
            self.native is not None and compared.native is not None and self.native.place(compared.native, first, stop)
        )

    def path(self, key: str) -> str:
        """Return the path of the staged file of a key."""
        return self._beside(key, lambda name: temporary_name(name, self.id))

    def _beside(self, key: str, name: Callable[[str], str]) -> str:
        folder, separator, last = (self.root + key).rpartition(os.sep)
        return f"{folder}{separator}{name(last)}"
