"""Storage transformers: store → store, applied between an array's chunks and its store.

A transformer is registered under its name (``tessarr.registry.register("storage_transformer", name, cls)``) and offers
``from_json(configuration)`` and ``wrap(store) → Store``. Requests go array → first → … → last → store. Metadata documents
do not pass through them: they act on the array's chunks only.

Source: Zarr v3.1 core, "Storage transformers"; ZEP 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self

from tessarr import registry
from tessarr.codecs.parse import named_config
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.types import JSON


class StorageTransformer(Protocol):
    """The contract of a registered storage transformer."""

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """Make the transformer from its ``configuration``. Raises `MetadataValidationError`."""
        ...

    def wrap(self, store: Store) -> Store:
        """Make a store that stores transformed values in `store`."""
        ...


def transformed(store: Store, metadata: ArrayMetadata) -> Store:
    """Wrap `store` in the array's storage transformers; without any, return `store`.

    Unknown transformers that need not be understood are skipped (the metadata parser refused all others).
    """
    for item in reversed(metadata.storage_transformers):
        parsed = named_config(item, (), [])
        implementation = registry.get("storage_transformer", parsed[0]) if parsed else None
        if parsed and implementation is not None:
            store = implementation.from_json(parsed[1]).wrap(store)
    return store
