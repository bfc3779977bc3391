"""`ConsolidatedMetadataStore`: zarr-python 2's store that reads metadata documents from ``.zmetadata``.

`tessarr.open_consolidated` does the same without another store; this class is for code that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tessarr.common import strict_json
from tessarr.errors import NodeNotFoundError
from tessarr.metadata.consolidated import V2_KEY, parse_v2
from tessarr.stores.base import Listing, Store
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.path import prefix_of
from tessarr.stores.wrappers.base import WrapperStore
from tessarr.types import Buffer, ByteRange

_DOCUMENTS = (".zarray", ".zgroup", ".zattrs")


class ConsolidatedMetadataStore(WrapperStore):
    """The store `store`, read-only, with its v2 documents replaced by those in the value of `metadata_key`.

    Raises `NodeNotFoundError` when there is no such key, `MetadataValidationError` when its value is not valid.
    """

    def __init__(self, store: Any, metadata_key: str = V2_KEY) -> None:
        from tessarr.stores.url import store_from

        super().__init__(store_from(store)[0].with_read_only(True))
        data = self.store.get(metadata_key)
        if data is None:
            hint = "Write it with consolidate_metadata"
            raise NodeNotFoundError("no consolidated metadata", store=self.store.url, key=metadata_key, hint=hint)
        found = parse_v2(strict_json.loads(data, key=metadata_key, allow_nan=True))
        documents: dict[str, bytes] = {}
        for path, node in found.items():
            start = prefix_of(path)
            documents |= {start + name: strict_json.dumps(document) for name, document in node.items()}
        self.meta_store = MemoryStore(documents, read_only=True)

    def _holder(self, key: str) -> Store:
        return self.meta_store if key.rpartition("/")[2] in _DOCUMENTS else self.store

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return self._holder(key).get(key, byte_range)

    def exists(self, key: str) -> bool:
        return self._holder(key).exists(key)

    def getsize(self, key: str) -> int | None:
        return self._holder(key).getsize(key)

    def list(self, prefix: str = "") -> Iterator[str]:
        yield from self.meta_store.list(prefix)
        yield from (key for key in self.store.list_prefix(prefix) if self._holder(key) is self.store)

    def _stamp_below(self, prefix: str, counts: Callable[[str], bool]) -> str | None:
        return self._stamp_of_wrapped(prefix, lambda key: self._holder(key) is self.store and counts(key))

    def list_dir(self, prefix: str) -> Listing:
        """See `Store.list_dir`: lists the documents of `meta_store`."""
        documents, others = self.meta_store.list_dir(prefix), self.store.list_dir(prefix)
        keys = {*documents.keys, *(key for key in others.keys if self._holder(key) is self.store)}
        return Listing(sorted(keys), sorted({*documents.prefixes, *others.prefixes}))
