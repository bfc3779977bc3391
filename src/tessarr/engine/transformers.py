"""Storage transformers: store → store, applied between an array's chunks and its store.

A transformer is registered under its name (``tessarr.registry.register("storage_transformer", name, cls)``). Requests go
array → first → … → last → store. Metadata documents do not pass through transformers, which act on the array's chunks only.

A transformer that only moves values says where they are: its store has the ability `tessarr.stores.protocols.Locate`, which
the native engine follows.

Source: Zarr v3.1 core, "Storage transformers"; ZEP 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Protocol, Self

from tessarr import registry
from tessarr.codecs.parse import named_config
from tessarr.metadata.array import ArrayMetadata
from tessarr.stores.base import Store
from tessarr.types import JSON


class StorageTransformer(Protocol):
    """The contract of a registered storage transformer.

    A class attribute ``changes_layout = True`` states that a reader which skips the transformer finds other chunks: then
    ``"must_understand": false`` is refused on creation, and makes a stored array read-only.
    """

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """Make the transformer from its ``configuration``. Raises `MetadataValidationError`."""
        ...

    def wrap(self, store: Store, path: str, metadata: ArrayMetadata) -> Store:
        """Make a store whose values are the chunks of the array at `path`, under the keys that its metadata gives them.

        Does no I/O. A method with the parameter `store` alone is called with the store alone.
        """
        ...


def transformed(store: Store, path: str, metadata: ArrayMetadata) -> Store:
    """Wrap `store` in the storage transformers of the array at `path`; without any, return `store`.

    Unknown transformers that need not be understood are skipped (the metadata parser refused all others).
    """
    for item in reversed(metadata.storage_transformers):
        parsed = named_config(item, (), [])
        implementation = registry.get("storage_transformer", parsed[0]) if parsed else None
        if parsed and implementation is not None:
            transformer = implementation.from_json(parsed[1])
            takes_array = len(inspect.signature(transformer.wrap).parameters) > 1
            store = transformer.wrap(store, path, metadata) if takes_array else transformer.wrap(store)
    return store
