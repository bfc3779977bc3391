"""What arrays and groups have in common: a place in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tessarr.core.twins import twin
from tessarr.stores.base import Store

if TYPE_CHECKING:
    from tessarr.stores.path import StorePath


class Node:
    """A node of a hierarchy. Inherited by `Array` and `Group`."""

    _store: Store
    _path: str
    _metadata: Any

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

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """What tells this node from others, for dask: its place and its documents, not the values in it."""
        from tessarr.metadata import formats

        documents = formats.dumps(self._metadata.documents())
        return (type(self).__qualname__, self._store.url, self._path, sorted(documents.items()))

    def close(self) -> None:
        """Close the store (which publishes a zip file's writes)."""
        self._store.close()

    close_async = twin(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
