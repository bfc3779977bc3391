"""Base class of `AsyncArray` and `AsyncGroup`: the wrapped node, and its attributes that are not coroutines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tessarr.core.node import Node

if TYPE_CHECKING:
    from tessarr.core.attributes import Attributes
    from tessarr.stores.base import Store
    from tessarr.stores.path import StorePath


def wrapped(value: object) -> Any:
    """Wrap arrays and groups in `AsyncArray` and `AsyncGroup`, also within a tuple; return any other value unchanged."""
    if isinstance(value, tuple) and value and all(isinstance(item, Node) for item in value):
        return tuple(map(wrapped, value))
    return value._asynchronous() if isinstance(value, Node) else value


class _AsyncNode:
    """Wrap an `Array` or a `Group`, and forward every attribute not defined here to that node."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        if name == "_node":  # not set yet during unpickling
            raise AttributeError(name)
        return getattr(self._node, name)

    def __repr__(self) -> str:
        return f"<Async{repr(self._node)[1:]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and bool(self._node == other._node)

    def __hash__(self) -> int:
        return hash(self._node)

    @property
    def attrs(self) -> Attributes:
        """The user attributes."""
        attributes: Attributes = self._node.attrs
        return attributes

    @property
    def store(self) -> Store:
        """The store the node is in."""
        store: Store = self._node.store
        return store

    @property
    def store_path(self) -> StorePath:
        """The store and the path in it."""
        place: StorePath = self._node.store_path
        return place

    @property
    def path(self) -> str:
        """Path in the store, without leading slash; "" for the root."""
        return str(self._node.path)

    @property
    def name(self) -> str:
        """Path in the store, with leading slash."""
        return str(self._node.name)

    @property
    def basename(self) -> str:
        """The last name of the path; "" for the root."""
        return str(self._node.basename)

    @property
    def read_only(self) -> bool:
        """Whether writes raise `ReadOnlyError`."""
        return bool(self._node.read_only)
