"""A wrapper that refuses writes."""

from __future__ import annotations

from typing import Self

from tessarr.stores.base import Store
from tessarr.stores.wrappers.base import ForwardingStore


class ReadOnlyStore(ForwardingStore):
    """A read-only store over another store. `with_read_only(False)` raises `ValueError`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read_only = True

    def with_read_only(self, read_only: bool = True) -> Self:
        """Return this store. Raises `ValueError` for ``False``."""
        if not read_only:
            raise ValueError("a ReadOnlyStore stays read-only; use the store it wraps")
        return self
