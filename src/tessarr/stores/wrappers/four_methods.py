"""Adapt any object with the methods `get`, `set`, `delete` and `list` to a store. It need not inherit from a class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tessarr.errors import UnsupportedOperationError
from tessarr.stores import functions
from tessarr.stores.base import ANY, Any_, LockContext, Store, Version
from tessarr.stores.buffers import as_bytes
from tessarr.stores.locks import KEYED_LOCKS
from tessarr.stores.path import check_key
from tessarr.stores.protocols import ConditionalSet, Lock, Update
from tessarr.types import Buffer, ByteRange

_List = list
SIGNATURES = {
    "get": "get(key, byte_range=None)",
    "set": "set(key, value)",
    "delete": "delete(key)",
    "list": 'list(prefix="")',
}
"""The methods of a store."""


def is_store_like(candidate: object) -> bool:
    """Return whether `candidate` is meant as a store: it has at least two of the four methods."""
    return sum(callable(getattr(candidate, name, None)) for name in SIGNATURES) >= 2


def store_of(candidate: object, *, read_only: bool = False) -> Store:
    """Make a store of an object with the four methods, which may be coroutines.

    A read-only object needs `get` and `list`. Raises `UnsupportedOperationError` that names the missing methods.

    >>> class Values(dict):
    ...     def get(self, key, byte_range=None):
    ...         value = super().get(key)
    ...         return value if value is None or byte_range is None else value[slice(*byte_range.bounds(len(value)))]
    >>> store_of(Values())
    Traceback (most recent call last):
    ...
    tessarr.errors.UnsupportedOperationError: Values is not a store: it lacks set(key, value), delete(key), list(prefix="")...
    """
    names = ("get", "list") if read_only else tuple(SIGNATURES)
    lacking = [SIGNATURES[name] for name in names if not callable(getattr(candidate, name, None))]
    if lacking:
        raise UnsupportedOperationError(
            f"{type(candidate).__name__} is not a store: it lacks {', '.join(lacking)}",
            hint="A store has get(key, byte_range=None), set(key, value), delete(key) and list(prefix='')",
        )
    methods: Any = candidate
    if inspect.iscoroutinefunction(methods.get):
        from tessarr.stores.asynchronous import to_sync

        return to_sync(methods, read_only=read_only)
    return FourMethods(methods, read_only=read_only)


class FourMethods(Store):
    """The store over `store`, an object with the four methods: see `store_of`.

    Other methods of the object that are abilities (`tessarr.stores.protocols`) are abilities of this store: `get_ranges`,
    `version` with `set_if`, `delete_if`, `lock`, `update`.
    """

    def __init__(self, store: Any, *, read_only: bool = False) -> None:
        self.store = store
        """The object."""
        self.read_only = read_only

    @property
    def url(self) -> str:
        """The ``url`` of the object, or one that opens it again in this process while this store exists."""
        if isinstance(getattr(self.store, "url", None), str):
            return functions.url_of(self.store)
        from tessarr.stores.memory.process_urls import registered

        return registered(self, f"object+{type(self.store).__name__.lower()}://{id(self.store):x}")

    def __eq__(self, other: object) -> bool:
        # By identity: an object may compare by its content, which changes, as a dictionary does.
        return type(other) is type(self) and other.store is self.store and other.read_only == self.read_only

    def __hash__(self) -> int:
        return hash((type(self), id(self.store)))

    def has_ability(self, ability: type) -> bool:
        """Whether the object has `ability`."""
        return isinstance(self.store, ability)

    def close(self) -> None:
        """Close the object, if it has a method `close`."""
        close = getattr(self.store, "close", None)
        if close is not None:
            close()

    def get(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        check_key(key)
        found: Buffer | None = self.store.get(key) if byte_range is None else self.store.get(key, byte_range)
        return found

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> _List[Buffer] | None:
        check_key(key)
        return functions.get_ranges(self.store, key, ranges)

    def version(self, key: str) -> Version | None:
        return functions.version_method(self.store)(key)

    def set(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        if not isinstance(if_match, Any_):
            return self.set_if(key, value, if_match)
        self._check_writable(key)
        check_key(key)
        self.store.set(key, as_bytes(value))
        return None

    def set_if(self, key: str, value: Buffer, version: Version | None) -> Version | None:
        self._check_writable(key)
        check_key(key)
        if not isinstance(self.store, ConditionalSet):
            raise functions.no_conditional_writes(self, key)
        return self.store.set_if(key, as_bytes(value), version)

    def update(self, key: str, change: Callable[[Buffer | None], Buffer | None]) -> None:
        self._check_writable(key)
        check_key(key)
        if isinstance(self.store, Update):
            self.store.update(key, change)
        else:
            super().update(key, change)

    def lock(self, key: str) -> LockContext:
        self._check_writable(key)
        check_key(key)
        lock: LockContext = self.store.lock(key) if isinstance(self.store, Lock) else KEYED_LOCKS.hold((self.url, key))
        return lock

    def delete(self, key: str) -> None:
        self._check_writable(key)
        check_key(key)
        self.store.delete(key)

    def delete_if(self, key: str, version: Version | None) -> None:
        self._check_writable(key)
        check_key(key)
        self.store.delete_if(key, version)

    def list(self, prefix: str = "") -> Iterator[str]:
        return functions.prefix_by_list(self.store, prefix)
