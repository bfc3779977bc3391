"""The methods of zarr-python 2's stores as mutable mappings, for every store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tessarr.types import Buffer

if TYPE_CHECKING:
    from tessarr.stores.base import Listing


class AsMapping:
    """A mapping from keys to bytes. Base of `Store`; an empty store is true, and `get` is that of stores, not of mappings.

    >>> from tessarr.storage import MemoryStore
    >>> store = MemoryStore()
    >>> store["a/b"] = b"1"
    >>> "a/b" in store, list(store), bytes(store["a/b"]), store.listdir("a"), bool(MemoryStore())
    (True, ['a/b'], b'1', ['b'], True)
    """

    if TYPE_CHECKING:

        def get(self, key: str) -> Buffer | None: ...
        def set(self, key: str, value: Buffer) -> object: ...
        def exists(self, key: str) -> bool: ...
        def delete(self, key: str) -> None: ...
        def delete_prefix(self, prefix: str) -> None: ...
        def list_prefix(self, prefix: str) -> Iterator[str]: ...
        def list_dir(self, prefix: str) -> Listing: ...

    def __getitem__(self, key: str) -> Buffer:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Buffer) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        if not self.exists(key):
            raise KeyError(key)
        self.delete(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.exists(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list_prefix(""))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    def keys(self) -> Iterator[str]:
        """Iterate over all keys."""
        return iter(self)

    def values(self) -> Iterator[Buffer]:
        """Iterate over all values."""
        return (self[key] for key in self)

    def items(self) -> Iterator[tuple[str, Buffer]]:
        """Iterate over ``(key, value)``."""
        return ((key, self[key]) for key in self)

    def listdir(self, path: str = "") -> list[str]:
        """List the names of the direct children (keys and prefixes) of `path`, sorted."""
        prefix = f"{path.strip('/')}/" if path.strip("/") else ""
        keys, prefixes = self.list_dir(prefix)
        return sorted([key[len(prefix) :] for key in keys] + [name[len(prefix) : -1] for name in prefixes])

    def rmdir(self, path: str = "") -> None:
        """Remove every key under `path`."""
        self.delete_prefix(f"{path.strip('/')}/" if path.strip("/") else "")


__all__ = ["AsMapping"]
