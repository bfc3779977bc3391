"""Adapt the dictionary of a memory store of zarr-python to a tessarr store: zarr-python's buffers become bytes."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from tessarr.stores.base import Version
from tessarr.stores.memory.store import _NUMBERS, MemoryStore
from tessarr.stores.path import prefix_of


class _Bytes(MutableMapping[str, Any]):
    """A mapping of bytes over a dictionary of zarr-python's buffers, below a prefix."""

    __slots__ = ("buffers", "prefix")

    def __init__(self, buffers: MutableMapping[str, Any], prefix: str) -> None:
        self.buffers, self.prefix = buffers, prefix

    def __getitem__(self, key: str) -> memoryview:
        array = self.buffers[self.prefix + key].as_numpy_array()
        return memoryview(array.reshape(-1).view("u1")) if array.size else memoryview(b"")

    def __setitem__(self, key: str, value: Any) -> None:
        from zarr.core.buffer import cpu

        self.buffers[self.prefix + key] = cpu.Buffer.from_bytes(value)

    def __delitem__(self, key: str) -> None:
        del self.buffers[self.prefix + key]

    def __contains__(self, key: object) -> bool:
        return f"{self.prefix}{key}" in self.buffers

    def __iter__(self) -> Iterator[str]:
        return (key[len(self.prefix) :] for key in [*self.buffers] if key.startswith(self.prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class BufferStore(MemoryStore):
    """The store over `buffers`, the dictionary of a memory store of zarr-python, below the path `prefix`.

    Values are stored as zarr-python's buffers, so that both packages read each other's values. All stores over one dictionary
    share its locks and versions.
    """

    def __init__(self, buffers: MutableMapping[str, Any], *, prefix: str = "", read_only: bool = False) -> None:
        super().__init__(_Bytes(buffers, prefix_of(prefix)), read_only=read_only)

    @property
    def _identity(self) -> int:
        bytes_of: Any = self._map
        return hash((id(bytes_of.buffers), bytes_of.prefix))

    def _version(self, key: str) -> Version | None:
        """See `MemoryStore._version`: every change replaces the buffer object."""
        bytes_of: Any = self._map
        value = bytes_of.buffers.get(bytes_of.prefix + key)
        if value is None:
            self._versions.pop(key, None)
            return None
        known = self._versions.get(key)
        if known is None or known[0] is not value:
            known = self._versions[key] = (value, str(next(_NUMBERS)))
        return known[1]
