"""Stand for an array in dask's tasks where dask must not have the array itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tessarr.errors import UnsupportedOperationError
from tessarr.stores.functions import is_in_memory

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.types import Selected, SelectionLike, ValuesLike


class InMemoryTarget:
    """An array in a store in memory, which dask's tasks write to: it cannot be pickled, because a pickle copies the values."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __setitem__(self, selection: SelectionLike, value: ValuesLike) -> None:
        self._array[selection] = value

    def __dask_tokenize__(self) -> object:
        return self._array

    def __reduce__(self) -> NoReturn:
        raise UnsupportedOperationError(
            "tasks in other processes would write to copies of this store in memory, and their values would be lost",
            store=self._array._store.url,
            path=self._array.name,
            hint="Write to a store that other processes share, such as a directory, or compute with scheduler='threads'",
        )


class UnevenSource:
    """An array whose chunks differ in shape, without the attribute ``chunks``, which dask reads and such an array refuses."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.ndim = array.ndim

    def __getitem__(self, selection: SelectionLike) -> Selected:
        return self._array[selection]

    def __dask_tokenize__(self) -> object:
        return self._array


def target_of(array: Array) -> Array | InMemoryTarget:
    """Return what dask's tasks are to write to: `array`, or for a store in memory an object that stays in this process."""
    return InMemoryTarget(array) if is_in_memory(array._store) else array
