"""zarr-python's ``zarr.storage._local``."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Self

import tessarr.storage as ours
from tessarr.facade.zarr3.storage._inner import InnerStore


class LocalStore(InnerStore):
    """A directory; `tessarr.storage.LocalStore` does the I/O."""

    def __init__(self, root: str | os.PathLike[str], *, read_only: bool = False) -> None:
        """Set up the directory `root`, which is created when the first value is set."""
        if not isinstance(root, str | os.PathLike):
            raise TypeError(f"'root' must be a string or Path instance. Got an instance of {type(root)} instead.")
        super().__init__(ours.LocalStore(root, read_only=read_only))
        self._is_open = False
        self._root_as_given = Path(root)

    @property
    def root(self) -> Path:
        """The directory, as it was given; that of a store that was made of a path is absolute."""
        given: Path | None = vars(self).get("_root_as_given")
        return self._directory if given is None else given

    @property
    def _directory(self) -> Path:
        return Path(self._inner.root)  # type: ignore[attr-defined]

    @classmethod
    async def open(cls, root: Any, *, read_only: bool = False, mode: str | None = None) -> Self:
        """Open the directory, creating it unless `read_only`. Raises `FileNotFoundError` if it is missing and `read_only`."""
        store = cls(root, read_only=read_only if mode is None else mode == "r")
        await store._open()
        return store

    async def _open(self) -> None:
        await asyncio.to_thread(self._make_root)
        await super()._open()

    def _make_root(self) -> None:
        if not self.read_only:
            self._directory.mkdir(parents=True, exist_ok=True)
        if not self._directory.exists():
            raise FileNotFoundError(f"{self.root} does not exist")

    async def delete(self, key: str) -> None:
        """Remove `key`, or every key below it where it is a directory."""
        if await asyncio.to_thread((self._directory / key).is_dir):
            await self.delete_dir(key)
        else:
            await super().delete(key)

    async def clear(self) -> None:
        """Remove every value."""
        self._check_writable()
        await super().clear()

    async def move(self, dest_root: Path | str) -> None:
        """Move the directory to `dest_root`, which must not exist."""
        if isinstance(dest_root, str):
            dest_root = Path(dest_root)
        await asyncio.to_thread(self._rename, dest_root)
        self._set_inner(ours.LocalStore(dest_root, read_only=self.read_only))
        self._root_as_given = dest_root

    def _rename(self, dest_root: Path) -> None:
        os.makedirs(dest_root.parent, exist_ok=True)
        if os.path.exists(dest_root):
            raise FileExistsError(f"Destination root {dest_root} already exists.")
        self._directory.rename(dest_root)

    def __str__(self) -> str:
        return f"file://{self.root.as_posix()}"


__all__ = ["LocalStore"]
