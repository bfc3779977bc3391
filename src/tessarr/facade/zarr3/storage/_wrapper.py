"""zarr-python's ``zarr.storage._wrapper``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Generic, Self, TypeVar

from tessarr.facade.zarr3.abc.store import ByteRequest, Store
from tessarr.facade.zarr3.storage._inner import adapt_store
from tessarr.stores.base import Store as OurStore

T_Store = TypeVar("T_Store")
"""The wrapped store."""


class WrapperStore(Store, Generic[T_Store]):
    """Forward every method to ``_store``, a store with zarr-python's interface."""

    _store: Any

    def __init__(self, store: T_Store) -> None:
        """Wrap `store`; a store of tessarr gets zarr-python's interface first."""
        self._store = adapt_store(store) if isinstance(store, OurStore) else store
        super().__init__(read_only=self._store.read_only)

    def _with_store(self, store: T_Store) -> Self:
        """Wrap `store` as this store wraps its own; subclasses pass their options on."""
        return type(self)(store)

    @classmethod
    async def open(cls, store_cls: Callable[..., T_Store], *args: object, **kwargs: object) -> Self:
        """Make a store of `store_cls`, open it, and wrap it."""
        store: Any = store_cls(*args, **kwargs)
        await store._open()
        return cls(store=store)

    def __enter__(self) -> Self:
        return self._with_store(self._store.__enter__())

    def __exit__(self, *exc: object) -> None:
        self._store.__exit__(*exc)

    async def _open(self) -> None:
        await self._store._open()

    async def _ensure_open(self) -> None:
        await self._store._ensure_open()

    @property
    def _is_open(self) -> bool:
        return bool(self._store._is_open)

    @_is_open.setter
    def _is_open(self, value: bool) -> None:
        if value:
            raise NotImplementedError("WrapperStore must be opened via the `_open` method")

    def with_read_only(self, read_only: bool = False) -> Store:
        """Wrap the wrapped store's ``with_read_only`` in the same way."""
        return self._with_store(self._store.with_read_only(read_only))

    @property
    def read_only(self) -> bool:
        """Whether the wrapped store refuses writes."""
        return bool(self._store.read_only)

    def __eq__(self, value: object) -> bool:
        return isinstance(value, type(self)) and type(self) is type(value) and self._store == value._store

    __hash__ = Store.__hash__

    def __str__(self) -> str:
        return f"wrapping-{self._store}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._store).__name__}, '{self._store}')"

    async def is_empty(self, prefix: str) -> bool:
        return bool(await self._store.is_empty(prefix))

    async def clear(self) -> None:
        await self._store.clear()

    def _check_writable(self) -> None:
        self._store._check_writable()

    async def get(self, key: str, prototype: object, byte_range: ByteRequest | None = None) -> Any:
        return await self._store.get(key, prototype, byte_range)

    async def get_partial_values(
        self, prototype: object, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[object]:
        return list(await self._store.get_partial_values(prototype, key_ranges))

    def get_ranges(
        self, key: str, byte_ranges: Sequence[ByteRequest | None], **options: object
    ) -> AsyncIterator[Sequence[tuple[int, object]]]:
        return self._store.get_ranges(key, byte_ranges, **options)  # type: ignore[no-any-return]

    async def exists(self, key: str) -> bool:
        return bool(await self._store.exists(key))

    async def set(self, key: str, value: object) -> None:
        await self._store.set(key, value)

    async def set_if_not_exists(self, key: str, value: object) -> None:
        await self._store.set_if_not_exists(key, value)

    async def _set_many(self, values: Iterable[tuple[str, object]]) -> None:
        await self._store._set_many(values)

    @property
    def supports_writes(self) -> bool:
        """Whether `set` of the wrapped store works."""
        return bool(self._store.supports_writes)

    @property
    def supports_deletes(self) -> bool:
        """Whether `delete` of the wrapped store works."""
        return bool(self._store.supports_deletes)

    @property
    def supports_listing(self) -> bool:
        """Whether the ``list…`` methods of the wrapped store work."""
        return bool(self._store.supports_listing)

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether `zarr.consolidate_metadata` may write to the wrapped store."""
        return bool(self._store.supports_consolidated_metadata)

    def get_sync(self, key: str, *, prototype: object = None, byte_range: ByteRequest | None = None) -> object:
        """Call `get` without an event loop. Raises `TypeError` if the wrapped store cannot."""
        return self._sync("get")(key, prototype=prototype, byte_range=byte_range)

    def set_sync(self, key: str, value: object) -> None:
        """Call `set` without an event loop. Raises `TypeError` if the wrapped store cannot."""
        self._sync("set")(key, value)

    def delete_sync(self, key: str) -> None:
        """Call `delete` without an event loop. Raises `TypeError` if the wrapped store cannot."""
        self._sync("delete")(key)

    def _sync(self, verb: str) -> Callable[..., object]:
        method: Callable[..., object] | None = getattr(self._store, f"{verb}_sync", None)
        if method is None:
            raise TypeError(f"{type(self._store).__name__} does not support synchronous {verb}")
        return method

    async def delete(self, key: str) -> None:
        await self._store.delete(key)

    async def delete_dir(self, prefix: str) -> None:
        await self._store.delete_dir(prefix)

    def list(self) -> AsyncIterator[str]:
        return self._store.list()  # type: ignore[no-any-return]

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        return self._store.list_prefix(prefix)  # type: ignore[no-any-return]

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        return self._store.list_dir(prefix)  # type: ignore[no-any-return]

    async def getsize(self, key: str) -> int:
        return int(await self._store.getsize(key))

    async def getsize_prefix(self, prefix: str) -> int:
        return int(await self._store.getsize_prefix(prefix))

    def close(self) -> None:
        """Close the wrapped store."""
        self._store.close()


__all__ = ["WrapperStore"]
