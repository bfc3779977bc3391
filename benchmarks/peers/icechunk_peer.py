"""Measure commits of Icechunk, through zarr-python, on a local file system. It syncs nothing."""

from __future__ import annotations

from typing import Any

import icechunk
import numpy as np
import zarr
from layouts import Layout

from peers.base import NotSupportedError, Peer


class Icechunk(Peer):
    """Write in a session, and commit it."""

    def version(self) -> str:
        return f"icechunk {icechunk.__version__}"

    def create_together(self, path: str, layout: Layout, names: tuple[str, ...], *, durable: bool) -> Any:
        if durable:
            raise NotSupportedError("its local storage syncs nothing")
        repository = icechunk.Repository.create(icechunk.local_filesystem_storage(path))
        session = repository.writable_session("main")
        root = zarr.group(session.store)
        for name in names:
            array = root.create_array(
                name, shape=layout.shape, chunks=layout.chunk, dtype=layout.dtype, compressors=None
            )
            array[...] = 1
        session.commit("made")
        return repository

    def change_together(self, handle: Any, names: tuple[str, ...], value: np.ndarray) -> None:
        session = handle.writable_session("main")
        root: Any = zarr.open_group(session.store, mode="r+")
        for name in names:
            root[name][...] = value
        session.commit("changed")

    def read_together(self, handle: Any, name: str) -> np.ndarray:
        array: Any = zarr.open_array(handle.readonly_session("main").store, path=name, mode="r")
        return np.asarray(array[...])
