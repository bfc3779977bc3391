"""zarr-python's ``zarr.storage._zip``."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path
from typing import Any, Literal

import tessarr.storage as ours
from tessarr.errors import StoreError
from tessarr.facade.zarr3.abc.store import ByteRequest
from tessarr.facade.zarr3.storage._inner import InnerStore
from tessarr.stores.base import Store as OurStore


class ZipStore(InnerStore):
    """A zip archive, opened at the first use; `tessarr.storage.ZipStore` does the I/O."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        mode: Literal["r", "w", "a", "x"] = "r",
        read_only: bool | None = None,
        compression: int = zipfile.ZIP_STORED,
        allowZip64: bool = True,  # noqa: N803 - the name in zarr-python and zipfile
    ) -> None:
        """Set up the archive at `path`. `mode` is that of `zipfile.ZipFile`."""
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"'path' must be a string or Path instance. Got an instance of {type(path)} instead.")
        self._given_path = Path(path)
        self._options: dict[str, Any] = {"mode": mode, "compression": compression, "allowZip64": allowZip64}
        self._read_only = mode == "r" if read_only is None else read_only
        self._is_open = False

    @property
    def path(self) -> Path:
        """Path of the archive."""
        given = self.__dict__.get("_given_path")
        return Path(self._inner.path if given is None else given)  # type: ignore[attr-defined]

    @property
    def _inner(self) -> OurStore:
        if "_inner_store" not in self.__dict__:
            mode = self._options["mode"]
            if mode == "r" and not self.path.exists():
                raise FileNotFoundError(2, "No such file or directory", str(self.path))
            try:
                self._set_inner(ours.ZipStore(self.path, read_only=self._read_only, **self._options))
            except StoreError as error:
                if mode in ("r", "a") and self.path.exists() and not zipfile.is_zipfile(self.path):
                    raise zipfile.BadZipFile("File is not a zip file") from error
                raise
        return self._inner_store

    def _sync_open(self) -> None:
        _ = self._inner

    async def _open(self) -> None:
        self._sync_open()

    def __getstate__(self) -> dict[str, object]:
        state = super().__getstate__()
        if "_given_path" in state:
            state.pop("_inner_store", None)
            state["_options"] = {**self._options, "mode": "r" if self._options["mode"] == "r" else "a"}
        return state

    def close(self) -> None:
        """Publish written values, and close the archive."""
        if "_inner_store" in self.__dict__:
            super().close()

    def _get(self, key: str, prototype: object = None, byte_range: ByteRequest | None = None) -> object:
        """Read as `get` does, without an event loop; code for zarr-python calls it."""
        return self.get_sync(key, prototype=prototype, byte_range=byte_range)

    def _set(self, key: str, value: object) -> None:
        """Write as `set` does, without an event loop; code for zarr-python calls it."""
        self.set_sync(key, value)

    async def clear(self) -> None:
        """Remove every key: replace the archive by an empty one."""
        self._check_writable()
        self._inner.close()
        os.remove(self.path)
        del self._inner_store
        self._options["mode"] = "w"

    async def move(self, path: Path | str) -> None:
        """Move the archive to `path`."""
        self.close()
        os.makedirs(Path(path).parent, exist_ok=True)
        shutil.move(self.path, path)
        self._given_path = Path(path)
        self.__dict__.pop("_inner_store", None)
        self._options["mode"] = "r" if self._read_only else "a"

    def __str__(self) -> str:
        return f"zip://{self.path}"

    def __eq__(self, value: object) -> bool:
        return isinstance(value, type(self)) and self.path == value.path

    __hash__ = InnerStore.__hash__


__all__ = ["ZipStore"]
