"""The base class of stores that keep each value of an array under another key of the same store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tessarr.stores import functions
from tessarr.stores.base import Listing, Store
from tessarr.stores.fetch import Extent, Located
from tessarr.stores.path import check_prefix, prefix_of
from tessarr.stores.protocols import (
    ExchangePrefixes,
    ListDir,
    ListVersions,
    Locate,
    PlainFiles,
    RenamePrefix,
    ReplacePrefix,
    Settle,
    Stamp,
)
from tessarr.stores.wrappers.base import ForwardingStore
from tessarr.types import Buffer

_List = list
_KEEP_TOGETHER = (ExchangePrefixes, ListDir, ListVersions, RenamePrefix, ReplacePrefix, Settle, Stamp)
"""Abilities that depend on the keys of one prefix being together in the wrapped store."""


class RelocatedStore(ForwardingStore):
    """A store over the values below `path` of another store, whose keys `_inner_key` and `_own_key` map one by one."""

    def __init__(self, store: Store, path: str) -> None:
        super().__init__(store)
        self.prefix = prefix_of(path)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), self.prefix, self.store))

    def has_ability(self, ability: type) -> bool:
        """Whether values have `ability` where they are; `Locate` where they are files."""
        if ability is Locate:
            return isinstance(self.store, PlainFiles | Locate)
        return ability not in _KEEP_TOGETHER and super().has_ability(ability)

    def _own_key(self, inner: str) -> str | None:
        """Map a key of the wrapped store back: the inverse of `_inner_key`; ``None``: the key of another value."""
        raise NotImplementedError

    def _outer_key(self, key: str) -> str:
        return self._own_key(key) or key

    def locate(self, keys: Sequence[str]) -> Sequence[Located | None] | None:
        """See `tessarr.stores.protocols.Locate`: the value under the other key, whole."""
        inner_keys = [self._inner_key(key) for key in keys]
        if isinstance(self.store, Locate):
            return self.store.locate(inner_keys)
        return [Located((Extent(self.store, key),)) if self.store.exists(key) else None for key in inner_keys]

    # -- prefixes: the keys below them are not together ------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[str]:
        check_prefix(prefix)
        return self._own_below(self.store.list_prefix(self.prefix), prefix)

    async def list_prefix_async(self, prefix: str) -> _List[str]:
        check_prefix(prefix)
        return [*self._own_below(await self.store.list_prefix_async(self.prefix), prefix)]

    def _own_below(self, inner_keys: Iterable[str], prefix: str) -> Iterator[str]:
        own = map(self._own_key, inner_keys)
        return (key for key in own if key is not None and key.startswith(prefix))

    def _stamp_below(self, prefix: str, counts: Callable[[str], bool]) -> str | None:
        return None

    def list_dir(self, prefix: str) -> Listing:
        return functions.children(self.list(prefix), prefix)

    async def list_dir_async(self, prefix: str) -> Listing:
        return functions.children(await self.list_prefix_async(prefix), prefix)

    def getsize_prefix(self, prefix: str) -> int:
        return Store.getsize_prefix(self, prefix)

    async def getsize_prefix_async(self, prefix: str) -> int:
        return await Store.getsize_prefix_async(self, prefix)

    def delete_prefix(self, prefix: str) -> None:
        Store.delete_prefix(self, prefix)

    async def delete_prefix_async(self, prefix: str) -> None:
        await Store.delete_prefix_async(self, prefix)

    def replace_prefix(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        Store.replace_prefix(self, prefix, items)

    async def replace_prefix_async(self, prefix: str, items: Mapping[str, Buffer]) -> None:
        await Store.replace_prefix_async(self, prefix, items)
