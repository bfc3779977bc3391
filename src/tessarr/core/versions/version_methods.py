"""Commit changes of an array with the storage transformer ``tessarr.versioned``, and read earlier versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tessarr.core.array_parts.selection_methods import SelectionMethods
from tessarr.errors import ArrayNotFoundError, MetadataValidationError, UnsupportedOperationError
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store, _in_thread
from tessarr.stores.path import prefix_of

if TYPE_CHECKING:
    from datetime import datetime

    from tessarr.stores.transformed.array_commit import Commit
    from tessarr.stores.transformed.versioned import VersionedStore


class VersionMethods(SelectionMethods):
    """Commit, name and read versions of an array. Base of `Array`."""

    def commit(self, message: str = "") -> Commit:
        """Make the chunks that were written through this object the newest version, in one step, with the present document.

        Raises `ConflictError` (with `keys`), having changed nothing, when others have committed the same chunks since this
        object read the array; `UnsupportedOperationError` for an array without the storage transformer ``tessarr.versioned``.

        >>> import tessarr
        >>> transformer = {"name": "tessarr.versioned", "configuration": {}}
        >>> z = tessarr.create_array({}, shape=2, dtype="u1", storage_transformers=[transformer])
        >>> z[:] = 1
        >>> first = z.commit("ones")
        >>> z[:] = 2
        >>> second = z.commit("twos")
        >>> z.at_version(first.id)[:].tolist(), [commit.message for commit in z.versions()]
        ([1, 1], ['twos', 'ones'])
        """
        from tessarr.common import strict_json
        from tessarr.stores.buffers import byte_view

        store = self._versioned(self._bound.store)
        value = self._store.get(prefix_of(self._path) + "zarr.json")
        if value is None:
            raise ArrayNotFoundError("the array was removed", store=self._store.url, path=self.name)
        document = strict_json.plain(strict_json.loads(bytes(byte_view(value)), key="zarr.json"))
        return store.commit(message, document)

    async def commit_async(self, message: str = "") -> Commit:
        return await _in_thread(self.commit, message)

    def versions(self) -> list[Commit]:
        """List the committed versions, the newest first."""
        return [*self._versioned(self._bound.store).commits()]

    async def versions_async(self) -> list[Commit]:
        return await _in_thread(self.versions)

    def tag(self, name: str, version: str | datetime | Commit | None = None) -> Commit:
        """Name a version for good; ``None``: the newest. Returns it. Raises `ConflictError` where the name is taken."""
        store = self._versioned(self._bound.store)
        commit = store.newest() if version is None else store.resolve(version)
        store.tag(name, commit)
        return commit

    async def tag_async(self, name: str, version: str | datetime | Commit | None = None) -> Commit:
        return await _in_thread(self.tag, name, version)

    def at_version(self, version: str | datetime | Commit) -> Self:
        """Return the array as it was committed: an id, a tag, a `Commit`, or a time, at which it was the newest.

        It is read-only. Raises `StoreError` where there is no such version.
        """
        from tessarr.engine.transformers import transformed
        from tessarr.metadata import formats

        chunks = transformed(self._store, self._path, self._metadata)
        store = self._versioned(chunks)
        commit = store.resolve(version)
        store.read_only_at(commit)
        metadata = formats.parse_node(3, {"zarr.json": commit.document}).node
        transformers = self._metadata.storage_transformers
        if not isinstance(metadata, ArrayMetadata) or metadata.storage_transformers != transformers:
            raise MetadataValidationError(
                "the version is of an array with other storage transformers", store=self._store.url, path=self.name
            )
        made = self._make(self._store, self._path, metadata, self._options, read_only=True, order=self._order)
        made._transformed = (transformers, self._store, chunks)
        return made

    async def at_version_async(self, version: str | datetime | Commit) -> Self:
        return await _in_thread(self.at_version, version)

    @property
    def _keeps_versions(self) -> bool:
        return self._find_versioned(self._chunk_store()) is not None

    def _find_versioned(self, store: Store) -> VersionedStore | None:
        """Return the versioned store among the stores that transformers made of the array's store."""
        if not self._metadata.storage_transformers:
            return None
        from tessarr.stores.transformed.versioned import VersionedStore
        from tessarr.stores.wrappers.base import WrapperStore

        while isinstance(store, WrapperStore) and store is not self._store:
            if isinstance(store, VersionedStore):
                return store
            store = store.store
        return None

    def _versioned(self, store: Store) -> VersionedStore:
        found = self._find_versioned(store)
        if found is None:
            raise UnsupportedOperationError(
                "the array keeps no versions",
                store=self._store.url,
                path=self.name,
                hint='Create it with storage_transformers=[{"name": "tessarr.versioned"}]',
            )
        return found

    def _require_committed(self) -> None:
        """Raise `UnsupportedOperationError` where a copy of this object would lack chunks that are not committed."""
        found = self._find_versioned(self._chunk_store())
        if found is not None and found.has_staged:
            raise UnsupportedOperationError(
                "the array has chunks that are not committed, which a copy would lack",
                store=self._store.url,
                path=self.name,
                hint="Commit first",
            )
