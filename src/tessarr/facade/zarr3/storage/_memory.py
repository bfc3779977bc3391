"""zarr-python's ``zarr.storage._memory``."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any, Self

import tessarr.storage as ours
from tessarr.facade.zarr3.buffer.cpu import Buffer
from tessarr.facade.zarr3.storage._inner import InnerStore
from tessarr.storage import GpuMemoryStore
from tessarr.stores.memory.store import is_open


class _AsBytes(MutableMapping[str, object]):
    """View a user's dictionary of buffers as a dictionary of bytes."""

    def __init__(self, buffers: MutableMapping[str, object]) -> None:
        self.buffers = buffers
        self._cached: dict[str, tuple[object, bytes]] = {}
        """Cache of (buffer, bytes) by key: `MemoryStore` detects a changed value by the identity of the bytes object."""

    def __getitem__(self, key: str) -> object:
        value = self.buffers[key]
        to_bytes = getattr(value, "to_bytes", None)
        if to_bytes is None:
            return value
        cached = self._cached.get(key)
        if cached is None or cached[0] is not value:
            cached = self._cached[key] = value, to_bytes()
        return cached[1]

    def __setitem__(self, key: str, value: Any) -> None:
        data = bytes(value)
        buffer = Buffer.from_bytes(data)
        self._cached[key] = buffer, data
        self.buffers[key] = buffer

    def __delitem__(self, key: str) -> None:
        self._cached.pop(key, None)
        del self.buffers[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.buffers)

    def __len__(self) -> int:
        return len(self.buffers)


_VIEWS: weakref.WeakValueDictionary[int, _AsBytes] = weakref.WeakValueDictionary()
"""Identity of a user's dictionary → its view, which all stores over the dictionary share, so that they are one place."""


def _view_of(buffers: MutableMapping[str, object]) -> _AsBytes:
    return _VIEWS.setdefault(id(buffers), _AsBytes(buffers))


def hold_buffers(store: ours.MemoryStore) -> None:
    """Let a store that was just made over a user's dictionary keep buffers in it, as zarr-python does, instead of bytes."""
    store.replace_map(_view_of)


class _AsBuffers(_AsBytes):
    """View tessarr's dictionary of bytes as a dictionary of buffers."""

    def __getitem__(self, key: str) -> object:
        return Buffer.from_bytes(self.buffers[key])

    def __setitem__(self, key: str, value: Any) -> None:
        self.buffers[key] = value.to_bytes() if hasattr(value, "to_bytes") else bytes(value)


def _bytes(value: Any) -> bytes:
    return value.to_bytes() if hasattr(value, "to_bytes") else bytes(value)


class MemoryStore(InnerStore):
    """A dictionary; `tessarr.storage.MemoryStore` does the I/O."""

    def __init__(self, store_dict: MutableMapping[str, object] | None = None, *, read_only: bool = False) -> None:
        """Wrap `store_dict`, which maps keys to buffers or bytes; ``None``: a new dictionary."""
        given = None if store_dict is None else _view_of(store_dict)
        super().__init__(ours.MemoryStore(given, read_only=read_only))

    @property
    def _store_dict(self) -> MutableMapping[str, object]:
        """The user's dictionary of buffers, or a view of tessarr's dictionary of bytes."""
        inner: Any = self._inner
        return inner._map.buffers if isinstance(inner._map, _AsBytes) else _AsBuffers(inner._map)

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, type(self)) or self.read_only != value.read_only:
            return False
        mine, other = self._store_dict, value._store_dict
        if getattr(mine, "buffers", mine) is getattr(other, "buffers", other) or self._inner == value._inner:
            return True
        return mine.keys() == other.keys() and all(_bytes(mine[key]) == _bytes(other[key]) for key in mine)

    __hash__ = InnerStore.__hash__

    def __str__(self) -> str:
        return f"memory://{id(getattr(self._store_dict, 'buffers', self._store_dict))}"


class ManagedMemoryStore(InnerStore):
    """Named memory in this process; `tessarr.storage.ManagedMemoryStore` holds the values."""

    def __init__(self, name: str | None = None, *, path: str = "", read_only: bool = False) -> None:
        """Open the memory called `name`: all stores of one name share their values."""
        super().__init__(ours.ManagedMemoryStore(name, path=path, read_only=read_only))

    @property
    def _store_dict(self) -> MutableMapping[str, object]:
        """A view of the memory's dictionary of bytes, whose keys begin with the store's path."""
        return _AsBuffers(self._inner._place)  # type: ignore[attr-defined]

    @property
    def name(self) -> str:
        """The name that all stores over this memory share."""
        return str(self._inner.name)  # type: ignore[attr-defined]

    @property
    def path(self) -> str:
        """The prefix of the store within the memory."""
        return str(self._inner.path)  # type: ignore[attr-defined]

    @classmethod
    def from_url(cls, url: str, *, read_only: bool = False) -> Self:
        """Open the store at ``memory://name/path``. Raises `ValueError` when no store of that name is open."""
        name, _, path = url.removeprefix("memory://").partition("/")
        if not url.startswith("memory://"):
            raise ValueError(f"Expected a 'memory://' URL, got {url!r}")
        if not is_open(name):
            raise ValueError(f"Memory store not found for URL {url!r}: no store of that name is open in this process")
        return cls(name, path=path, read_only=read_only)


__all__ = ["GpuMemoryStore", "ManagedMemoryStore", "MemoryStore"]
