"""What arrays and groups have in common: a place in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tessarr.core.twins import twin
from tessarr.stores.base import Store

if TYPE_CHECKING:
    from tessarr.stores.path import StorePath


class Node:
    """A node of a hierarchy. Inherited by `Array` and `Group`."""

    _store: Store
    _path: str

    @property
    def store(self) -> Store:
        """The store the node is in."""
        return self._store

    @property
    def store_path(self) -> StorePath:
        """The store and the path in it."""
        from tessarr.stores.path import StorePath

        return StorePath(self._store, self._path)

    @property
    def path(self) -> str:
        """Path in the store, without leading slash; "" for the root."""
        return self._path

    @property
    def name(self) -> str:
        """Path in the store, with leading slash."""
        return f"/{self._path}"

    @property
    def basename(self) -> str:
        """The last name of the path; "" for the root."""
        return self._path.rpartition("/")[2]

    @property
    def chunk_store(self) -> Store:
        """The store that chunks are in: always `store`."""
        return self._store

    synchronizer = None
    """Locks are the store's affair; here for code that asks."""

    def close(self) -> None:
        """Close the store (which publishes a zip file's writes)."""
        self._store.close()

    close_async = twin(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
