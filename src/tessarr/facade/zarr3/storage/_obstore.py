"""zarr-python's ``zarr.storage._obstore``."""

from __future__ import annotations

import os
from typing import Any

import tessarr.storage as ours
from tessarr.facade.zarr3.storage._inner import InnerStore


class ObjectStore(InnerStore):
    """A store of obstore; `tessarr.storage.ObjectStore` does the I/O."""

    def __init__(self, store: Any, *, read_only: bool = False) -> None:
        """Wrap `store`, a store of obstore. Raises `TypeError` for a path or URL."""
        if isinstance(store, str | os.PathLike):
            raise TypeError(f"expected a store of obstore, got {store!r}; obstore.store.from_url makes one of a URL")
        super().__init__(ours.ObjectStore(store, read_only=read_only))
        self._given = store

    @property
    def store(self) -> Any:
        """The store of obstore."""
        return self.__dict__.get("_given", getattr(self._inner, "_client", None))


__all__ = ["ObjectStore"]
