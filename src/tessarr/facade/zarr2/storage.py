"""zarr-python 2's ``zarr.storage``: every store of tessarr by name, and its functions on stores."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import tessarr.storage as _ours
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.creation.arrays import create
from tessarr.core.locate import locate
from tessarr.core.open import create_group
from tessarr.core.stored import metadata_io, read_nodes
from tessarr.core.stored.consolidated import follow_change_steps
from tessarr.core.stored.move import move_node
from tessarr.facade.zarr2._base_store import BaseStore, Store
from tessarr.grids.guess import ChunksLike
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.base import Store as OurStore
from tessarr.stores.local.zarr2 import check_separator
from tessarr.stores.path import normalize_path, prefix_of
from tessarr.stores.url import StoreLike
from tessarr.types import ShapeLike

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

array_meta_key, group_meta_key, attrs_key = ".zarray", ".zgroup", ".zattrs"
normalize_storage_path = normalize_path

__all__ = [
    *(name for name in _ours.__all__ if name != "Store"),
    "BaseStore",
    "Store",
    "array_meta_key",
    "attrs_key",
    "group_meta_key",
    "init_store",
    "normalize_storage_path",
    "normalize_store_arg",
]


def __getattr__(name: str) -> Any:
    if name == "default_compressor":
        from tessarr.common.numcodecs import numcodecs

        return numcodecs.Blosc()
    return getattr(_ours, name)


def normalize_store_arg(
    store: StoreLike, storage_options: Mapping[str, object] | None = None, mode: str = "r"
) -> object:
    """Return the store that a path, a URL, a mapping or a store means."""
    found = locate(store, None, mode, storage_options)[0]
    return found if found.given is None else found.given


def init_store(store: StoreLike, shape: ShapeLike, chunks: ChunksLike, **kwargs: Any) -> None:
    """Create a v1 array in an empty store, as the example of the Zarr v1 specification does.

    `compression` and `compression_opts` are v1's names; with ``zarr_format=2`` or ``3`` the array has a newer format.
    """
    create(shape, store=store, chunks=chunks, zarr_format=kwargs.pop("zarr_format", 1), **kwargs)


def init_array(store: StoreLike, shape: ShapeLike, **kwargs: Any) -> None:
    """Create an array in a store, as `tessarr.create` does, and return nothing."""
    create(shape, store=store, **kwargs)


def init_group(store: StoreLike, overwrite: bool = False, path: str | None = None, **kwargs: Any) -> None:
    """Create a group in a store, as `tessarr.create_group` does, and return nothing."""
    create_group(store, path=path, overwrite=overwrite, zarr_format=kwargs.get("zarr_format"))


def contains_array(store: StoreLike, path: str | None = None) -> bool:
    """Return whether an array is at `path`."""
    where, here, _ = locate(store, path, None)
    return isinstance(read_nodes.read_node(where, here), ArrayMetadata)


def contains_group(store: StoreLike, path: str | None = None, explicit_only: bool = True) -> bool:  # noqa: ARG001 - theirs
    """Return whether a group is at `path`."""
    where, here, _ = locate(store, path, None)
    return isinstance(read_nodes.read_node(where, here), GroupMetadata)


def listdir(store: StoreLike, path: str | None = None) -> list[str]:
    """List the names of the direct children (keys and prefixes) of `path`, sorted."""
    where, here, _ = locate(store, path, None)
    prefix = prefix_of(here)
    listing = where.list_dir(prefix)
    return sorted([key[len(prefix) :] for key in listing.keys] + [name[len(prefix) : -1] for name in listing.prefixes])


def rmdir(store: StoreLike, path: str | None = None) -> None:
    """Remove every key under `path`."""
    where, here, _ = locate(store, path, None)
    where.delete_prefix(prefix_of(here))
    if here:
        run_steps(follow_change_steps(where, here, replaced=True))


def rename(store: StoreLike, src_path: str, dst_path: str) -> None:
    """Move a node to another path."""
    where, src, _ = locate(store, src_path, None)
    move_node(where, src, locate(store, dst_path, None)[1])


def getsize(store: StoreLike, path: str | None = None) -> int:
    """Add up the bytes of all values under `path`."""
    where, here, _ = locate(store, path, None)
    return where.getsize_prefix(prefix_of(here))


def migrate_1to2(store: StoreLike) -> None:
    """Migrate the v1 array in a store to v2, in place: rewrite the documents, leave the chunks unchanged."""
    from tessarr.core.open import open_array
    from tessarr.metadata.v1 import ARRAY_KEY, ATTRIBUTES_KEY

    old = open_array(store, mode="r+", zarr_format=1)
    new = old._metadata.with_(zarr_format=2, extra={})
    metadata_io.replace_documents(old.store, metadata_io.keyed_documents("", new.documents()).items())
    old.store.delete_many([ARRAY_KEY, ATTRIBUTES_KEY])


class _OpensStores(type):
    """The class of `FSStore` and `ABSStore`, which open stores of other classes; those are instances of them, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return getattr(instance, "_opened_as", None) == cls.__name__

    def opened(cls, store: OurStore) -> OurStore:
        """Note that `store` was opened by a call of this class."""
        store._opened_as = cls.__name__  # type: ignore[attr-defined]
        return store


class FSStore(OurStore, metaclass=_OpensStores):
    """A store at a URL, opened as zarr-python 2's ``FSStore``. A call returns the store of tessarr for the URL."""

    def __new__(  # type: ignore[misc] # a store of another class
        cls,
        url: str,
        *,
        mode: str = "w",
        fs: AbstractFileSystem | None = None,
        dimension_separator: str | None = None,
        **storage_options: object,
    ) -> OurStore:
        """Return the store at a URL, or at a path in `fs`, a file system of fsspec; `storage_options` are fsspec's.

        ``mode="r"`` makes it read-only; no mode deletes anything. New v2 arrays take `dimension_separator`. ``check``,
        ``create`` and ``auto_mkdir`` have no effect; ``normalize_keys``, ``key_separator``, ``exceptions`` and
        ``missing_exceptions`` are refused unless they have their default values. Where fsspec has the file system of the
        store, it is the attribute ``fs``, and the path there ``path``.
        """
        for name in ("check", "create", "auto_mkdir"):
            storage_options.pop(name, None)
        for name, defaults in _FSSTORE_OPTIONS.items():
            if name in storage_options and storage_options.pop(name) not in defaults:
                raise ValueError(f"FSStore's option {name!r} is not supported; leave it out")
        store = _opened(url, fs, mode == "r", storage_options)
        if dimension_separator is not None:
            store.dimension_separator = check_separator(dimension_separator)
        return cls.opened(store)


def _opened(
    url: str, fs: AbstractFileSystem | None, read_only: bool, storage_options: Mapping[str, object]
) -> OurStore:
    """Open a store, and set its file system of fsspec, and the path there, as attributes."""
    from tessarr.stores.url import store_from

    if fs is not None and "file" not in fs.protocol:
        from tessarr.stores.remote.fsspec import FsspecStore

        return FsspecStore(fs, path=str(fs._strip_protocol(url)), read_only=read_only)
    found = store_from(url, mode="r" if read_only else None, storage_options=storage_options or None)[0]
    if not hasattr(found, "fs") and not isinstance(found, _ours.MemoryStore):
        with suppress(ImportError, ValueError):  # no fsspec, or no file system of this kind
            from fsspec.core import url_to_fs

            fs, path = url_to_fs(url, **storage_options)
            vars(found).update(fs=fs, path=path)
    return found


class ABSStore(OurStore, metaclass=_OpensStores):
    """A store in an Azure container, opened as zarr-python 2's ``ABSStore``. A call returns tessarr's store for it."""

    def __new__(  # type: ignore[misc] # a store of another class
        cls,
        container: str,
        prefix: str = "",
        account_name: str | None = None,
        account_key: str | None = None,
        *,
        read_only: bool = False,
        storage_options: Mapping[str, object] | None = None,
    ) -> OurStore:
        """Return the store in a container, below `prefix`."""
        from tessarr.stores.url import open_url

        options = {"account_name": account_name, "account_key": account_key, **(storage_options or {})}
        given = {name: value for name, value in options.items() if value is not None}
        return cls.opened(
            open_url(f"az://{container}/{prefix}".rstrip("/"), storage_options=given, read_only=read_only)
        )


_FSSTORE_OPTIONS: dict[str, tuple[object, ...]] = {
    "normalize_keys": (False,),
    "key_separator": (None, "."),
    "exceptions": (None,),
    "missing_exceptions": (None,),
}
