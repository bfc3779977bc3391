"""Functions and classes that zarr-python 1 and 2 code calls by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.creation.arrays import create
from tessarr.core.group import Group
from tessarr.core.locate import locate
from tessarr.core.open import create_group
from tessarr.core.stored import metadata_io
from tessarr.core.stored.consolidated import follow_change_steps
from tessarr.core.stored.move import move_node
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.path import prefix_of


def init_store(store: Any, shape: Any, chunks: Any, **kwargs: Any) -> None:
    """Create a v1 array in an empty store, as the example of the Zarr v1 specification does.

    `compression` and `compression_opts` are v1's names; with ``zarr_format=2`` or ``3`` the array has a newer format.
    """
    create(shape, store=store, chunks=chunks, zarr_format=kwargs.pop("zarr_format", 1), **kwargs)


def init_array(store: Any, shape: Any, **kwargs: Any) -> None:
    """Create an array in a store, as `tessarr.create` does, and return nothing."""
    create(shape, store=store, **kwargs)


def init_group(store: Any, overwrite: bool = False, path: str | None = None, **kwargs: Any) -> None:
    """Create a group in a store, as `tessarr.create_group` does, and return nothing."""
    create_group(store, path=path, overwrite=overwrite, zarr_format=kwargs.get("zarr_format"))


def contains_array(store: Any, path: str | None = None) -> bool:
    """Whether an array is at `path`."""
    where, here, _ = locate(store, path, None)
    return isinstance(metadata_io.read_node(where, here), ArrayMetadata)


def contains_group(store: Any, path: str | None = None, explicit_only: bool = True) -> bool:
    """Whether a group is at `path`."""
    where, here, _ = locate(store, path, None)
    return isinstance(metadata_io.read_node(where, here), GroupMetadata)


def listdir(store: Any, path: str | None = None) -> list[str]:
    """List the names of the direct children (keys and prefixes) of `path`, sorted."""
    where, here, _ = locate(store, path, None)
    prefix = prefix_of(here)
    listing = where.list_dir(prefix)
    return sorted([key[len(prefix) :] for key in listing.keys] + [name[len(prefix) : -1] for name in listing.prefixes])


def rmdir(store: Any, path: str | None = None) -> None:
    """Remove every key under `path`."""
    where, here, _ = locate(store, path, None)
    where.delete_prefix(prefix_of(here))
    if here:
        run_steps(follow_change_steps(where, here, replaced=True))


def rename(store: Any, src_path: str, dst_path: str) -> None:
    """Move a node to another path."""
    where, src, _ = locate(store, src_path, None)
    move_node(where, src, locate(store, dst_path, None)[1])


def getsize(store: Any, path: str | None = None) -> int:
    """Add up the bytes of all values under `path`."""
    where, here, _ = locate(store, path, None)
    return where.getsize_prefix(prefix_of(here))


def migrate_1to2(store: Any) -> None:
    """Turn the v1 array in a store into a v2 array, in place: documents are rewritten, chunks stay unchanged."""
    from tessarr.core.open import open_array
    from tessarr.metadata.v1 import ARRAY_KEY, ATTRIBUTES_KEY

    old = open_array(store, mode="r+", zarr_format=1)
    new = old._metadata.with_(zarr_format=2, extra={})
    metadata_io.replace_documents(old.store, metadata_io.keyed_documents("", new.documents()).items())
    old.store.delete_many([ARRAY_KEY, ATTRIBUTES_KEY])


class ThreadSynchronizer:
    """A lock per key for the threads of one process.

    tessarr locks partial writes by itself, for threads and processes; this class is for code that asks for it by name.
    """

    def __getitem__(self, item: str) -> AbstractContextManager[Any]:
        from tessarr.stores.locks import KEYED_LOCKS

        return KEYED_LOCKS.hold((id(self), item))


class ProcessSynchronizer:
    """A lock per key for the processes that share the directory `path`. See `ThreadSynchronizer`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getitem__(self, item: str) -> AbstractContextManager[Any]:
        return self._hold(item)

    @contextmanager
    def _hold(self, item: str) -> Iterator[None]:
        from tessarr.stores.local.store import LocalStore

        with LocalStore(self.path).lock(item):
            yield


__all__ = [
    "Array",
    "Group",
    "ProcessSynchronizer",
    "ThreadSynchronizer",
    "contains_array",
    "contains_group",
    "getsize",
    "init_array",
    "init_group",
    "init_store",
    "listdir",
    "migrate_1to2",
    "rename",
    "rmdir",
]
