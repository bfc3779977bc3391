"""Base class of arrays and groups: a store, a path in the store, and attributes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from tessarr.core.asynchronous.sans_io import async_variant
from tessarr.stores.base import Store
from tessarr.stores.locks import fork_safe_lock
from tessarr.stores.url import public_store
from tessarr.types import ZarrFormat

if TYPE_CHECKING:
    from tessarr.stores.path import StorePath


STATE_LOCK = fork_safe_lock()
"""Held while the metadata of a node is replaced in memory: threads share nodes, and no change may be lost."""
_ORDER = itertools.count(1)


class cached_by_state(cached_property[Any]):  # noqa: N801 - a decorator, and to type checkers this one
    """A `cached_property` derived from the metadata: computed once for all threads, and again after the metadata changed."""

    def __get__(self, node: Any, owner: type[object] | None = None) -> Any:
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
    """A sentinel that is replaced with every change of `_metadata`, for compare-and-swap between threads."""
    _attributes_order: int = 0
    """Sequence number of the change of attributes that `_metadata` holds."""
    _given_attributes: Mapping[str, object] = MappingProxyType({})
    """The last values that were set through this object, with the setting ``zarr_python.given_attributes``."""
    _format_path: str | None
    """Path of the node at which the format was found: the group that led here; ``None`` where the user gave the format.
    Not set: at this node."""

    def _require_writable(self) -> None:
        """Raise `ReadOnlyError` for a node that was opened read-only."""
        raise NotImplementedError

    def _asynchronous(self) -> object:
        """Wrap the node in `AsyncArray` or `AsyncGroup`."""
        raise NotImplementedError

    def _format_found_at(self) -> str | None:
        found: str | None = self.__dict__.get("_format_path", self._path)
        return found

    def _with_format_found_at(self, path: str | None) -> Self:
        if path != self._path:
            self._format_path = path
        return self

    async def _require_current_steps(self) -> None:
        """Raise `StaleNodeError` when the documents of Zarr v1 or v2 that this object changes describe the node no more."""
        from tessarr.core.stored.metadata_io import require_current_steps

        await require_current_steps(self._store, self._path, self._metadata, self._format_found_at())

    async def _migrated_to_steps(self) -> ZarrFormat | None:
        """Look after a change of documents whether a migration has finished during it: the newest format, or ``None``."""
        from tessarr.core.stored.metadata_io import migrated_to_steps

        return await migrated_to_steps(self._store, self._metadata, self._format_found_at())

    async def _change_attributes_steps(
        self,
        change: Callable[[dict[str, object]], dict[str, object]],
        change_newer: Callable[[dict[str, object]], dict[str, object]] | None = None,
    ) -> None:
        """Store ``change(attributes)``, and what `change_newer` makes of those that a migration has stored meanwhile.

        The migration may have seen the change; ``None``: `change` may be repeated.
        """
        from tessarr.core.stored.metadata_io import change_attributes_steps, settle_attributes_steps

        self._require_writable()
        await self._require_current_steps()
        order = 0

        def change_in_order(old: dict[str, object]) -> dict[str, object]:
            nonlocal order
            order = next(_ORDER)  # in the order of the stored changes: `change` runs under the store's lock
            return change(old)

        place = (self._store, self._path)
        changed = await change_attributes_steps(*place, self._metadata, change_in_order)
        if (newer := await settle_attributes_steps(*place, changed, self._format_found_at())) is not None:
            with suppress(KeyError):  # an attribute is deleted that the new description lacks already
                await change_attributes_steps(*place, self._metadata.with_(zarr_format=newer), change_newer or change)
        with STATE_LOCK:
            if order > self._attributes_order:
                self._metadata = self._metadata.with_attributes(changed.attributes)
                self._attributes_order, self._state = order, object()

    def __setstate__(self, state: dict[str, Any]) -> None:
        given = state.pop("given", None)
        self.__dict__.update(state)
        if given is not None and self._store.given is None:  # the store's pickle holds only its place
            self._store = given.__tessarr_place__()[0]

    @property
    def store(self) -> Store:
        """The store that holds the node; where the user gave a store object, that object."""
        store: Store = public_store(self._store)
        return store

    @property
    def store_path(self) -> StorePath:
        """The store, and the path in the store."""
        from tessarr.stores.path import StorePath

        given = public_store(self._store)
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
        """The store that holds the chunks: always `store`."""
        return self.store

    synchronizer = None
    """Always ``None``: stores hold the locks. For code written for zarr-python 2."""

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Identify the node for dask by its place and its documents, not by its values."""
        from tessarr.metadata import serialize

        documents = serialize.dumps(self._metadata.documents())
        return (type(self).__qualname__, self._store.url, self._path, sorted(documents.items()))

    def close(self) -> None:
        """Close the store (which publishes a zip file's writes)."""
        self._store.close()

    close_async = async_variant(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close_async()
