"""Stage, compare and rename the files of a transaction by a few calls of the Rust module.

What a call cannot do is left to the caller, which does it file by file and says why it fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from tessarr.common import extension
from tessarr.stores.base import Version
from tessarr.stores.local import file as localfile
from tessarr.types import Buffer


def write_new(files: Sequence[tuple[str, Buffer]]) -> list[Version] | None:
    """Write new files (path, value). Returns their versions; ``None``: none was written."""
    native = extension.module()
    return None if native is None else native.write_new_files(files)


def versions_at(paths: Sequence[str]) -> list[Version | None]:
    """Return the versions of files; ``None`` for a path without a file. Raises `OSError`."""
    native = extension.module()
    return [*map(localfile.version_at, paths)] if native is None else native.file_versions(paths)


def place(steps: Sequence[tuple[str, str, Version | None, Version]]) -> bool:
    """Rename staged files over values, in any order: (staged file, value, its version, version of the staged file).

    Versions are those of a journal. Returns whether all were renamed. If not, some may have been: another version, or a
    failure, prevented one.
    """
    native = extension.module()
    return native is not None and native.place_staged(steps)
