"""Measure TensorStore, driver zarr3 over the local file system, synchronously."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tensorstore as ts
from layouts import Layout

from peers.base import Peer


class TensorStore(Peer):
    """Wrap TensorStore; `file_io_sync`, its fsync, is off unless the row requires durability."""

    statement: ClassVar[str] = "import tensorstore"

    def version(self) -> str:
        return f"tensorstore {importlib.metadata.version('tensorstore')}"

    def _spec(self, path: str, *, durable: bool) -> dict[str, Any]:
        file = {"driver": "file", "path": path + "/", "file_io_sync": durable}
        return {"driver": "zarr3", "kvstore": file, "recheck_cached_data": True}

    def open(self, path: str) -> Any:
        return ts.open(self._spec(path, durable=False), open=True, read=True, write=True).result()

    def open_url(self, url: str) -> Any:
        spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": url, "path": "/"}}
        return ts.open(spec, open=True, read=True, context=ts.Context()).result()

    def read(self, array: Any, selection: tuple[Any, ...]) -> np.ndarray:
        return np.asarray(array[selection].read().result())

    def outer(self, array: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(array.oindex[rows, columns].read().result())

    def points(self, array: Any, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(array.vindex[rows, columns].read().result())

    def create(self, path: str, layout: Layout, *, durable: bool) -> Any:
        document = layout.metadata()
        for key in ("zarr_format", "attributes"):
            document.pop(key)
        return ts.open({**self._spec(path, durable=durable), "metadata": document}, create=True).result()

    def write(self, array: Any, selection: tuple[Any, ...], value: np.ndarray) -> None:
        array[selection].write(value).result()

    def list_group(self, path: str) -> int:
        """Open all arrays at once, because TensorStore has no groups."""
        folders = [str(folder) for folder in Path(path).iterdir() if folder.is_dir()]
        opened = [ts.open(self._spec(folder, durable=False), open=True) for folder in folders]
        return len([array.result() for array in opened])
