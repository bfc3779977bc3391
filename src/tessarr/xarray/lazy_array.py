"""A tessarr array as xarray's lazily indexed data, and coordinates that are read together."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray.backends.common import BackendArray
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from tessarr.types import AnyArray

if TYPE_CHECKING:
    from tessarr.core.array import Array

MOST_BYTES = 64 << 20
"""Limit on the decoded bytes of coordinates that are read ahead; the smallest ones come first."""


class CoordinateBatch:
    """Read the coordinates of a group's dimensions together, in one batch, on the first read of one.

    xarray loads these one after another when it makes its indexes; with a remote store each would wait for a round trip.
    An error of one coordinate is raised only when that one is read.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Array] = {}
        self._values: dict[str, AnyArray] = {}
        left = MOST_BYTES
        for name, array in sorted(arrays.items(), key=lambda item: item[1].nbytes):
            left -= array.nbytes
            if left >= 0:
                self._waiting[name] = array

    def values(self, name: str) -> AnyArray | None:
        """Return all values of the coordinate `name`, in the array's dtype; ``None`` when it is not in the batch."""
        from tessarr.core.array_parts.read_many import read_many
        from tessarr.errors import TessarrError

        with self._lock:
            if name in self._waiting:
                waiting, self._waiting = self._waiting, {}
                try:
                    read = read_many((array, Ellipsis) for array in waiting.values())
                except TessarrError:
                    read = []  # reading the faulty one raises the error
                self._values.update(zip(waiting, read, strict=False))
            return self._values.get(name)


class LazyArray(BackendArray):
    """Read the values of `array` when they are indexed; those of a coordinate from its `batch`."""

    __slots__ = ("_array", "_batch", "_name", "dtype", "shape")

    def __init__(self, array: Array, name: str = "", batch: CoordinateBatch | None = None) -> None:
        self._array = array
        self._name = name
        self._batch = batch
        self.shape = array.shape
        text = array.dtype.kind == "O" and array._metadata.data_type.name == "string"
        self.dtype = create_vlen_dtype(str) if text else array.dtype

    def get_array(self) -> Array:
        """Return the array itself."""
        return self._array

    def __getstate__(self) -> tuple[Array, str]:
        return self._array, self._name

    def __setstate__(self, state: tuple[Array, str]) -> None:
        LazyArray.__init__(self, *state)  # without the batch: a pickle holds no values

    def _result(self, value: object) -> object:
        return np.asarray(value, dtype=self.dtype) if self.dtype.kind == "T" and isinstance(value, str) else value

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        held = None if self._batch is None else self._batch.values(self._name)
        if held is not None:
            return self._result(held[key.tuple])  # 1-d, where all kinds of indexers are equivalent
        array = self._array
        read: Callable[[Any], Any] = array.__getitem__
        if isinstance(key, indexing.VectorizedIndexer):
            read = array.vindex.__getitem__
        elif isinstance(key, indexing.OuterIndexer):
            read = array.oindex.__getitem__
        adapted = indexing.explicit_indexing_adapter
        return self._result(adapted(key, self.shape, indexing.IndexingSupport.VECTORIZED, read))

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> object:
        """Read ``self[key]`` asynchronously."""
        array = self._array
        read: Callable[[Any], Awaitable[Any]] = array.read_async
        if isinstance(key, indexing.VectorizedIndexer):
            read = array.vindex.getitem
        elif isinstance(key, indexing.OuterIndexer):
            read = array.oindex.getitem
        adapted = indexing.async_explicit_indexing_adapter
        return self._result(await adapted(key, self.shape, indexing.IndexingSupport.VECTORIZED, read))
