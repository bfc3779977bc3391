"""Measure zarrista, direct bindings of the Rust library zarrs."""

from __future__ import annotations

import importlib.metadata
from typing import Any, ClassVar

import numpy as np
import zarrista
from layouts import Layout
from zarrista.store import FilesystemStore

from peers.base import NotSupportedError, Peer


class Zarrista(Peer):
    """Wrap zarrista, which has box selections of step 1 only."""

    statement: ClassVar[str] = "import zarrista"

    def version(self) -> str:
        return f"zarrista {importlib.metadata.version('zarrista')}"

    def open(self, path: str) -> Any:
        return zarrista.Array.open(FilesystemStore(path))

    def read(self, array: Any, selection: tuple[Any, ...]) -> np.ndarray:
        if any(isinstance(part, slice) and part.step not in (None, 1) for part in selection):
            raise NotSupportedError("steps")
        return np.asarray(array[selection].to_numpy())

    def create(self, path: str, layout: Layout, *, durable: bool) -> Any:
        if durable:
            raise NotSupportedError("no fsync")
        metadata: Any = layout.metadata()
        array = zarrista.Array.from_metadata(metadata, FilesystemStore(path))
        array.store_metadata()
        return array

    def write(self, array: Any, selection: tuple[Any, ...], value: np.ndarray) -> None:
        array.store_array_subset(selection, np.ascontiguousarray(value))
