"""The local stores of zarr-python 2 under their names and signatures.

All are subclasses of `LocalStore`; they differ in `dimension_separator`, the separator of chunk indices in new v2 arrays.
``normalize_keys`` lower-cased keys in zarr-python 2, which merges nodes; only ``False`` is accepted.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from tessarr.stores.local.store import LocalStore
from tessarr.stores.path import normalize_path


def check_separator(separator: str | None) -> str | None:
    """Return a `dimension_separator` that a user gives. Raises `ValueError` unless it is ``"."``, ``"/"`` or ``None``."""
    if separator not in (None, ".", "/"):
        raise ValueError(f"dimension_separator must be '.' or '/'; got {separator!r}")
    return separator


class DirectoryStore(LocalStore):
    """A local store whose new v2 arrays keep all chunks in one directory by default."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        normalize_keys: bool = False,
        dimension_separator: str | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        if normalize_keys:
            raise ValueError("normalize_keys=True would merge nodes whose names differ in case; rename the nodes")
        super().__init__(path, read_only=read_only)
        self.dimension_separator = check_separator(dimension_separator)

    @property
    def path(self) -> str:
        """The absolute path of the directory, as a string."""
        return str(self.root)

    def dir_path(self, path: str | None = None) -> str:
        """Return the absolute path of the directory that holds the keys below `path`."""
        return os.path.join(self.path, normalize_path(path)) if path else self.path


class NestedDirectoryStore(DirectoryStore):
    """A local store whose new v2 arrays keep a directory per dimension."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        normalize_keys: bool = False,
        dimension_separator: str | None = "/",
        *,
        read_only: bool = False,
    ) -> None:
        if dimension_separator != "/":
            raise ValueError(f"a NestedDirectoryStore separates dimensions by '/'; got {dimension_separator!r}")
        super().__init__(path, normalize_keys, dimension_separator, read_only=read_only)


class TempStore(DirectoryStore):
    """A new temporary directory, removed when the interpreter ends."""

    def __init__(
        self,
        suffix: str = "",
        prefix: str = "zarr",
        dir: str | os.PathLike[str] | None = None,  # noqa: A002 - the name in zarr-python and tempfile
        normalize_keys: bool = False,
        dimension_separator: str | None = None,
    ) -> None:
        path = tempfile.mkdtemp(suffix=suffix, prefix=prefix, dir=None if dir is None else os.fspath(dir))
        atexit.register(atexit_rmtree, path)
        super().__init__(path, normalize_keys, dimension_separator)


def atexit_rmtree(path: str) -> None:
    """Remove the directory at `path`, if it exists; for `atexit.register`."""
    shutil.rmtree(path, ignore_errors=True)
