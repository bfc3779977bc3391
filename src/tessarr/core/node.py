"""What arrays and groups have in common: a place in a store."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from tessarr.core.asynchronous.sans_io import Steps, async_variant
from tessarr.core.stored import metadata_io
from tessarr.stores.base import Store
from tessarr.stores.locks import Moment
from tessarr.stores.shown import shown

if TYPE_CHECKING:
    from tessarr.stores.path import StorePath


STATE_LOCK = Moment()
"""Held while a node takes over what has become of it: threads share nodes, and none may undo what another did."""
_ORDER = itertools.count(1)


class cached_by_state(cached_property[Any]):  # noqa: N801 - a decorator, and to type checkers this one
    """A `cached_property` derived from the metadata: computed once for all threads, and again after the metadata changed."""

    def __get__(self, node: Any, owner: type[Any] | None = None) -> Any:
        if node is None:
            return self
        while True:
            state = node._state
            made = self.func(node)
            with STATE_LOCK:
                if node._state is state:
                    return node.__dict__.setdefault(self.attrname, made)


class Node:
    """A node of a hierarchy. Inherited by `Array` and `Group`."""

    _store: Store
    _path: str
    _metadata: Any
    _state: object = None
    """Another object after every change of `_metadata`."""
    _attributes_order: int = 0
    """When, of all changes, the attributes at hand were stored."""

    def _require_writable(self) -> None:
        """Raise `ReadOnlyError` for a node that was opened read-only."""
        raise NotImplementedError

    def _asynchronous(self) -> Any:
        """The node with an asynchronous surface."""
        raise NotImplementedError

    def _change_attributes_steps(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Steps[None]:
        self._require_writable()
        order = 0

        def change_in_order(old: dict[str, Any]) -> dict[str, Any]:
            nonlocal order
            order = next(_ORDER)  # under the store's lock
            return change(old)

        changed = yield from metadata_io.change_attributes_steps(
            self._store, self._path, self._metadata, change_in_order
        )
        with STATE_LOCK:
            if order > self._attributes_order:
                self._metadata = self._metadata.with_attributes(changed.attributes)
                self._attributes_order, self._state = order, object()

    def __setstate__(self, state: dict[str, Any]) -> None:
        given = state.pop("given", None)
        self.__dict__.update(state)
        if given is not None and self._store.given is None:  # a store whose pickle holds nothing but its place
            self._store = given.__tessarr_place__()[0]

    @property
    def store(self) -> Store:
        """The store the node is in: the object that was given, where one was."""
        store: Store = shown(self._store)
        return store

    @property
    def store_path(self) -> StorePath:
        """The store and the path in it."""
        from tessarr.stores.path import StorePath

        given = shown(self._store)
        at = getattr(given, "__tessarr_path__", None)
        return StorePath(given, self._path) if at is None else at(self._path)

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
        return self.store

    synchronizer = None
    """Always ``None``: stores hold the locks. For code written for zarr-python 2."""

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """What tells this node from others, for dask: its place and its documents, not the values in it."""
        from tessarr.metadata import formats

        documents = formats.dumps(self._metadata.documents())
        return (type(self).__qualname__, self._store.url, self._path, sorted(documents.items()))

    def close(self) -> None:
        """Close the store (which publishes a zip file's writes)."""
        self._store.close()

    close_async = async_variant(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
