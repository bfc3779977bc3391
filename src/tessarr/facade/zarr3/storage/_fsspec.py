"""zarr-python's ``zarr.storage._fsspec``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tessarr.storage as ours
from tessarr.facade.zarr3.storage._inner import InnerStore

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

ALLOWED_EXCEPTIONS = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class FsspecStore(InnerStore):
    """A filesystem of fsspec; `tessarr.storage.FsspecStore` does the I/O."""

    allowed_exceptions: tuple[type[Exception], ...] = ALLOWED_EXCEPTIONS

    def __init__(
        self,
        fs: AbstractFileSystem,
        read_only: bool = False,
        path: str = "/",
        allowed_exceptions: tuple[type[Exception], ...] = ALLOWED_EXCEPTIONS,
    ) -> None:
        """Open `path` of the filesystem `fs`. `allowed_exceptions` are those by which `fs` reports a missing key."""
        super().__init__(ours.FsspecStore(fs, read_only, path, allowed_exceptions))
        self._given_fs = fs
        self._given_path = path
        self.allowed_exceptions = allowed_exceptions

    @property
    def fs(self) -> Any:
        """The filesystem."""
        return self.__dict__.get("_given_fs", getattr(self._inner, "given_fs", None))

    @property
    def path(self) -> str:
        """Root path of the store in the filesystem."""
        return str(self.__dict__.get("_given_path", getattr(self._inner, "path", "")))

    def __repr__(self) -> str:
        return f"<FsspecStore({type(self.fs).__name__}, {self.path})>"

    __str__ = __repr__

    @classmethod
    def _of(cls, made: Any, allowed_exceptions: tuple[type[Exception], ...]) -> FsspecStore:
        return cls(made.given_fs, made.read_only, made.path, allowed_exceptions)

    @classmethod
    def from_upath(
        cls, upath: Any, read_only: bool = False, allowed_exceptions: tuple[type[Exception], ...] = ALLOWED_EXCEPTIONS
    ) -> FsspecStore:
        """Make a store over a ``upath.UPath``."""
        return cls(upath.fs, read_only, upath.path.rstrip("/"), allowed_exceptions)

    @classmethod
    def from_mapper(
        cls, fs_map: Any, read_only: bool = False, allowed_exceptions: tuple[type[Exception], ...] = ALLOWED_EXCEPTIONS
    ) -> FsspecStore:
        """Make a store over an ``fsspec.FSMap``."""
        return cls(fs_map.fs, read_only, fs_map.root, allowed_exceptions)

    @classmethod
    def from_url(
        cls,
        url: object,
        storage_options: Mapping[str, object] | None = None,
        read_only: bool = False,
        allowed_exceptions: tuple[type[Exception], ...] = ALLOWED_EXCEPTIONS,
    ) -> FsspecStore:
        """Open the store at `url`; `storage_options` are those of the filesystem."""
        made = ours.FsspecStore.from_url(str(url), storage_options=storage_options, read_only=read_only)
        return cls._of(made, allowed_exceptions)


__all__ = ["FsspecStore"]
