"""The base classes of stores that users of zarr-python 2 write: mutable mappings from keys to bytes."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import MutableMapping
from types import TracebackType
from typing import Self

from tessarr.stores.base import Store as OurStore


class _StoreClass(ABCMeta):
    """The class of `BaseStore` and `Store`, of which tessarr's stores are instances, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or (cls.__module__ == __name__ and isinstance(instance, OurStore))


class BaseStore(MutableMapping[str, bytes], metaclass=_StoreClass):
    """A store that a program defines: `MappingStore` over the methods of a mutable mapping, with which it is read and written.

    >>> class Values(BaseStore):
    ...     def __init__(self): self.values_by_key = {}
    ...     def __getitem__(self, key): return self.values_by_key[key]
    ...     def __setitem__(self, key, value): self.values_by_key[key] = value
    ...     def __delitem__(self, key): del self.values_by_key[key]
    ...     def __iter__(self): return iter(self.values_by_key)
    ...     def __len__(self): return len(self.values_by_key)
    >>> import tessarr
    >>> values = Values()
    >>> tessarr.open_array(values, mode="w", shape=3, dtype="i4", zarr_format=2).store is values, sorted(values)
    (True, ['.zarray'])
    """

    read_only = False

    def __tessarr_place__(self) -> tuple[OurStore, str]:
        from tessarr.stores.memory.mapping import MappingStore

        store = MappingStore(self, read_only=self.read_only)
        store.given = self
        return store, ""

    def with_read_only(self, read_only: bool = True) -> Self:
        """Raise `NotImplementedError`: a store of zarr-python 2 is as it was made."""
        raise NotImplementedError(f"{type(self).__name__} cannot be made read-only={read_only}")

    def is_readable(self) -> bool:
        """Whether values can be read."""
        return True

    def is_writeable(self) -> bool:
        """Whether values can be written."""
        return not self.read_only

    def is_erasable(self) -> bool:
        """Whether values can be deleted."""
        return not self.read_only

    def is_listable(self) -> bool:
        """Whether keys can be listed."""
        return True

    def close(self) -> None:
        """Do nothing; stores that hold something override it."""

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Store(BaseStore):
    """The base class of zarr-python 2's own stores, and of others that are written like them."""
