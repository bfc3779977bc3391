"""A tessarr array as xarray's lazily indexed data, and the reads of an opening, made together."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Variable
from xarray.backends.common import BackendArray
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from tessarr.types import AnyArray, SelectionLike

if TYPE_CHECKING:
    from tessarr.core.array import Array

MOST_BYTES = 64 << 20
"""Limit on the decoded bytes of coordinates that are read ahead; the smallest ones come first."""
Element = tuple[int, ...]
"""The index of one element."""


class CoordinateBatch:
    """Read what xarray reads while it opens a dataset together, in one batch, on the first read of one.

    xarray loads the coordinates of dimensions (`whole`) one after another when it makes its indexes, and of each variable
    whose times it decodes the first and the last element (`ends`); with a remote store each would wait for a round trip.
    An error of one variable is raised only when that one is read.
    """

    def __init__(self, whole: Mapping[str, Array], ends: Mapping[str, Array] | None = None) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, Element | None], tuple[Array, SelectionLike]] = {}
        self._held: dict[tuple[str, Element | None], AnyArray] = {}
        left = MOST_BYTES
        for name, array in sorted({**(ends or {}), **whole}.items(), key=lambda item: item[1].nbytes):
            if name in whole or array.nchunks == 1:
                left -= array.nbytes
                if left >= 0:
                    self._waiting[name, None] = array, Ellipsis
            elif array.size:
                for element in ((0,) * array.ndim, tuple(length - 1 for length in array.shape)):
                    self._waiting[name, element] = array, element
        self._names = frozenset(name for name, _ in self._waiting)

    def values(self, name: str) -> AnyArray | None:
        """Return all values of the variable `name`, in the array's dtype; ``None`` when they are not in the batch."""
        return self._get(name, None)

    def select(self, name: str, key: indexing.ExplicitIndexer, shape: tuple[int, ...]) -> AnyArray | None:
        """Return the values of `name`, of shape `shape`, that `key` selects; ``None`` when they are not in the batch."""
        values = self.values(name)
        if values is not None:  # with one axis all kinds of indexers are equivalent
            return values[key.tuple] if values.ndim == 1 or isinstance(key, indexing.BasicIndexer) else None
        if not isinstance(key, indexing.BasicIndexer):
            return None
        ranges = [range(n)[one] if isinstance(one, slice) else one for n, one in zip(shape, key.tuple, strict=True)]
        if any(isinstance(one, range) and len(one) != 1 for one in ranges):
            return None
        value = self._get(name, tuple(one[0] if isinstance(one, range) else int(one) for one in ranges))
        return None if value is None else np.reshape(value, [1] * sum(isinstance(one, range) for one in ranges))

    def _get(self, name: str, element: Element | None) -> AnyArray | None:
        if name not in self._names:
            return None
        from tessarr.core.array_parts.read_many import read_many
        from tessarr.errors import TessarrError

        with self._lock:
            waiting, self._waiting = self._waiting, {}
            if waiting:
                try:
                    read = read_many(waiting.values())
                except TessarrError:
                    read = []  # reading the faulty one raises the error
                self._held.update(zip(waiting, read, strict=False))
            return self._held.get((name, element))


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
        if self._array._metadata.data_type.may_be_missing:
            return self._array._without_mask(value)
        return np.asarray(value, dtype=self.dtype) if self.dtype.kind == "T" and isinstance(value, str) else value

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        held = None if self._batch is None else self._batch.select(self._name, key, self.shape)
        if held is not None:
            return self._result(held)
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


def variable(array: Array, dims: Sequence[str] | None = None) -> Variable:
    """Make a variable whose values are read when they are used, of any array: stored, or made of arrays (`tessarr.virtual`).

    `dims`: names of the dimensions; ``None``: those of the array, ``dim_0`` and so on where it has none. The array's attributes
    become the variable's. Raises `ValueError` for another number of names.

    >>> import tessarr, tessarr.xarray, xarray as xr
    >>> from tessarr import virtual
    >>> z = virtual.stack([tessarr.array([1, 2]), tessarr.array([3, 4])])
    >>> xr.Dataset({"a": tessarr.xarray.variable(z, ["time", "x"])}).a.sel(x=1).values.tolist()
    [2, 4]
    """
    given = array.dims or (None,) * array.ndim
    names = [name or f"dim_{axis}" for axis, name in enumerate(given)] if dims is None else dims
    return Variable(names, indexing.LazilyIndexedArray(LazyArray(array)), dict(array.attrs))
