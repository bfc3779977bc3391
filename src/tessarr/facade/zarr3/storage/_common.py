"""zarr-python's ``zarr.storage._common``: a path in a store, and the functions that resolve a store-like value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from tessarr.core.asynchronous.stores import CoroutineStore
from tessarr.facade.zarr2.storage import contains_array as _contains_array
from tessarr.facade.zarr2.storage import contains_group as _contains_group
from tessarr.facade.zarr3.abc.store import ByteRequest, Store
from tessarr.facade.zarr3.buffer import default_buffer_prototype
from tessarr.facade.zarr3.storage._inner import adapt_store
from tessarr.stores.base import Store as OurStore
from tessarr.stores.path import join, normalize_path
from tessarr.stores.url import StoreLike, public_store, store_from


class StorePath:
    """A store and a path in the store: the class of `zarr.Array.store_path`."""

    store: Any
    path: str

    def __init__(self, store: object, path: str = "") -> None:
        """Combine `store`, with zarr-python's interface, and `path`."""
        self.store = store
        self.path = normalize_path(path)

    def __tessarr_place__(self) -> tuple[OurStore, str]:
        """Return the tessarr store that does the I/O, and the path."""
        store, above = store_from(self.store)
        return store, join(above, self.path)

    @property
    def read_only(self) -> bool:
        """Whether the store refuses writes."""
        return bool(self.store.read_only)

    @classmethod
    async def open(cls, store: Any, path: str, mode: str | None = None) -> Self:
        """Make the path in `store`, read-only for `mode` "r". Raises `ValueError` for writing to a read-only store."""
        if mode == "r" and not store.read_only:
            store = store.with_read_only(True)
        if mode is not None and mode != "r" and store.read_only:
            raise ValueError(f"Store is read-only but mode is {mode!r}. Create a writable store or use 'r' mode.")
        return cls(store, path)

    async def get(self, prototype: object = None, byte_range: ByteRequest | None = None) -> Any:
        """Read the value at the path."""
        return await self.store.get(self.path, prototype or default_buffer_prototype(), byte_range)

    async def set(self, value: object) -> None:
        """Replace the value at the path."""
        await self.store.set(self.path, value)

    async def set_if_not_exists(self, default: object) -> None:
        """Set the value at the path if none is stored."""
        await self.store.set_if_not_exists(self.path, default)

    async def delete(self) -> None:
        """Remove the value at the path."""
        await self.store.delete(self.path)

    async def delete_dir(self) -> None:
        """Remove every key below the path."""
        await self.store.delete_dir(self.path)

    async def exists(self) -> bool:
        """Return whether there is a value at the path."""
        return bool(await self.store.exists(self.path))

    async def is_empty(self) -> bool:
        """Return whether there is no key below the path."""
        return bool(await self.store.is_empty(self.path))

    def __truediv__(self, other: str) -> Self:
        return type(self)(self.store, join(self.path, normalize_path(other)))

    def __str__(self) -> str:
        return f"{self.store}/{self.path}".rstrip("/") if self.path else str(self.store)

    def __repr__(self) -> str:
        return f"StorePath({type(self.store).__name__}, '{self}')"

    def __eq__(self, other: object) -> bool:
        try:
            return bool(self.store == other.store and self.path == other.path)  # type: ignore[attr-defined]
        except AttributeError:
            return False

    def __hash__(self) -> int:
        return hash(self.path)


def _dereference_path(root: str, path: str) -> str:
    """Join `path` to `root`."""
    return join(root.rstrip("/"), path).rstrip("/")


Store._path_class = StorePath


async def make_store(
    store_like: StoreLike, *, mode: str | None = None, storage_options: Mapping[str, object] | None = None
) -> Store:
    """Resolve `store_like` to a store with zarr-python's interface, without a path."""
    return (await make_store_path(store_like, mode=mode, storage_options=storage_options)).store  # type: ignore[no-any-return]


async def make_store_path(
    store_like: StoreLike,
    *,
    path: str | None = "",
    mode: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> StorePath:
    """Resolve `store_like` to a path in a store with zarr-python's interface."""
    if isinstance(store_like, StorePath):
        return store_like / normalize_path(path) if path else store_like
    if isinstance(store_like, Store):
        return await StorePath.open(store_like, normalize_path(path), mode)
    store, above = store_from(store_like, mode=mode, storage_options=storage_options)
    given = public_store(store)
    if isinstance(given, OurStore):
        given = store.given = given.store if isinstance(given, CoroutineStore) else adapt_store(given)
    return StorePath(given, join(above, normalize_path(path)))


async def contains_array(store_path: StoreLike, zarr_format: Literal[2, 3]) -> bool:
    """Return whether an array of `zarr_format` is at a place."""
    store, path = store_from(store_path)
    return await store.exists_async(join(path, "zarr.json" if zarr_format == 3 else ".zarray")) and _contains_array(
        store, path
    )


async def contains_group(store_path: StoreLike, zarr_format: Literal[2, 3]) -> bool:
    """Return whether a group of `zarr_format` is at a place."""
    store, path = store_from(store_path)
    return await store.exists_async(join(path, "zarr.json" if zarr_format == 3 else ".zgroup")) and _contains_group(
        store, path
    )


__all__ = ["StoreLike", "StorePath", "contains_array", "contains_group", "make_store", "make_store_path"]
