"""zarr-python's ``zarr.storage._zip``."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, Literal

import tessarr.storage as ours
from tessarr.errors import StoreError
from tessarr.facade.zarr3.abc.store import ByteRequest
from tessarr.facade.zarr3.storage._inner import InnerStore
from tessarr.stores.base import Store as OurStore
from tessarr.stores.zip.format import binary_file


class ZipStore(InnerStore):
    """A zip archive, opened at the first use; `tessarr.storage.ZipStore` does the I/O."""

    def __init__(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        mode: Literal["r", "w", "a", "x"] = "r",
        read_only: bool | None = None,
        compression: int = zipfile.ZIP_STORED,
        allowZip64: bool = True,  # noqa: N803 - the name in zarr-python and zipfile
    ) -> None:
        """Set up the archive at `path`, or in an open binary file. `mode` is that of `zipfile.ZipFile`."""
        if not isinstance(path, str | os.PathLike):
            binary_file(path, mode)
        self._given_path = Path(path) if isinstance(path, str | os.PathLike) else path
        self._options: dict[str, Any] = {"mode": mode, "compression": compression, "allowZip64": allowZip64}
        self._read_only = mode == "r" if read_only is None else read_only
        self._is_open = False

    @property
    def path(self) -> Path | None:
        """Path of the archive; ``None`` for an open file."""
        given = self.__dict__.get("_given_path", getattr(self.__dict__.get("_inner_store"), "path", None))
        return Path(given) if isinstance(given, str | os.PathLike) else None

    def _path_for(self, method: str) -> Path:
        if self.path is None:
            raise NotImplementedError(f"{method} is not supported by a ZipStore backed by a file-like object")
        return self.path

    @property
    def _inner(self) -> OurStore:
        if "_inner_store" not in self.__dict__:
            mode, path = self._options["mode"], self.path
            if mode == "r" and path is not None and not path.exists():
                raise FileNotFoundError(2, "No such file or directory", str(path))
            if mode != "x" and path is not None and path.is_dir():
                raise IsADirectoryError(21, "Is a directory", str(path))
            try:
                self._set_inner(ours.ZipStore(path or self._given_path, read_only=self._read_only, **self._options))
            except io.UnsupportedOperation as error:
                raise io.UnsupportedOperation(f"the file must be readable and seekable: {error}") from error
            except StoreError as error:
                if mode in ("r", "a") and path is not None and path.exists() and not zipfile.is_zipfile(path):
                    raise zipfile.BadZipFile("File is not a zip file") from error
                raise
        return self._inner_store

    def _sync_open(self) -> None:
        _ = self._inner

    async def _open(self) -> None:
        self._sync_open()

    def __getstate__(self) -> dict[str, object]:
        if self.path is None:
            raise TypeError("cannot pickle a ZipStore backed by a file-like object; make it of a path")
        state = super().__getstate__()
        if "_given_path" in state:
            state.pop("_inner_store", None)
            state["_options"] = {**self._options, "mode": "r" if self._options["mode"] == "r" else "a"}
        return state

    def close(self) -> None:
        """Publish written values, and close the archive, which is opened again when it is used."""
        if "_inner_store" in self.__dict__:
            super().close()
            if "_given_path" in self.__dict__:  # otherwise it was made around a store of tessarr
                del self._inner_store
                self._options["mode"] = "r" if self._read_only else "a"

    def _get(self, key: str, prototype: object = None, byte_range: ByteRequest | None = None) -> object:
        """Read as `get` does, without an event loop; code for zarr-python calls it."""
        return self.get_sync(key, prototype=prototype, byte_range=byte_range)

    def _set(self, key: str, value: object) -> None:
        """Write as `set` does, without an event loop; code for zarr-python calls it."""
        self.set_sync(key, value)

    async def clear(self) -> None:
        """Remove every key: replace the archive by an empty one."""
        path = self._path_for("clear")
        self._check_writable()
        self._inner.close()
        os.remove(path)
        del self._inner_store
        self._options["mode"] = "w"

    async def move(self, path: Path | str) -> None:
        """Move the archive to `path`."""
        here = self._path_for("move")
        self.close()
        os.makedirs(Path(path).parent, exist_ok=True)
        shutil.move(here, path)
        self._given_path = Path(path)
        vars(self).pop("_inner_store", None)
        self._options["mode"] = "r" if self._read_only else "a"

    def __str__(self) -> str:
        return f"zip://{self._given_path!r}" if self.path is None else f"zip://{self.path}"

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, type(self)) or self.path != value.path:
            return False
        return self.path is not None or self._given_path is value._given_path

    __hash__ = InnerStore.__hash__


__all__ = ["ZipStore"]
