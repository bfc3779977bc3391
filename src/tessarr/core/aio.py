"""`AsyncArray` and `AsyncGroup`: the asynchronous surface under zarr-python's names.

They hold an `Array` or `Group` and forward to its ``_async`` methods; everything else (shape, dtype, attributes …) is the
same attribute of the node they hold.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import numpy.typing as npt

from tessarr.core.array import Array
from tessarr.core.group import Group


class _AsyncIndex:
    def __init__(self, get: Any) -> None:
        self._get = get

    async def getitem(self, selection: Any) -> Any:
        """Read asynchronously."""
        return await self._get(selection)


class AsyncArray:
    """An `Array` whose reading and writing are coroutines."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def __repr__(self) -> str:
        return f"<Async{repr(self._array)[1:]}"

    @classmethod
    async def open(cls, store: Any, zarr_format: int | None = None) -> AsyncArray:
        """Open the array at `store`."""
        from tessarr.core.hierarchy import open_array_async

        return cls(await open_array_async(store, zarr_format=zarr_format))

    @property
    def oindex(self) -> _AsyncIndex:
        """Orthogonal indexing."""
        return _AsyncIndex(self._array.get_orthogonal_selection_async)

    @property
    def vindex(self) -> _AsyncIndex:
        """Point indexing."""
        return _AsyncIndex(self._array.get_point_selection_async)

    async def getitem(self, selection: Any, *, prototype: Any = None) -> Any:
        """Call ``array[selection]`` asynchronously."""
        return await self._array.read_async(selection)

    async def setitem(self, selection: Any, value: npt.ArrayLike, prototype: Any = None) -> None:
        """Call ``array[selection] = value`` asynchronously."""
        await self._array.write_async(selection, value)

    async def get_orthogonal_selection(self, selection: Any, **kwargs: Any) -> Any:
        """See `Array.get_orthogonal_selection`."""
        return await self._array.get_orthogonal_selection_async(selection, **kwargs)

    async def get_mask_selection(self, mask: Any, **kwargs: Any) -> Any:
        """See `Array.get_mask_selection`."""
        return await self._array.get_mask_selection_async(mask, **kwargs)

    async def get_coordinate_selection(self, selection: Any, **kwargs: Any) -> Any:
        """See `Array.get_coordinate_selection`."""
        return await self._array.get_coordinate_selection_async(selection, **kwargs)

    async def resize(self, new_shape: Any, delete_outside_chunks: bool = True) -> None:
        """See `Array.resize`."""
        await self._array.resize_async(new_shape, delete_outside_chunks=delete_outside_chunks)

    async def append(self, data: npt.ArrayLike, axis: int = 0) -> tuple[int, ...]:
        """See `Array.append`."""
        return await self._array.append_async(data, axis)

    async def update_attributes(self, new_attributes: dict[str, Any]) -> AsyncArray:
        """See `Array.update_attributes`."""
        await self._array.update_attributes_async(new_attributes)
        return self

    async def nchunks_initialized(self) -> int:
        """See `Array.nchunks_initialized`."""
        import asyncio

        return await asyncio.to_thread(lambda: self._array.nchunks_initialized)

    async def nbytes_stored(self) -> int:
        """See `Array.nbytes_stored`."""
        return await self._array.nbytes_stored_async()

    async def info_complete(self) -> Any:
        """See `Array.info_complete`."""
        return await self._array.info_complete_async()


def _wrapped(node: Array | Group) -> AsyncArray | AsyncGroup:
    return AsyncArray(node) if isinstance(node, Array) else AsyncGroup(node)


class AsyncGroup:
    """A `Group` whose access to members is asynchronous; iterators are async generators."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def __repr__(self) -> str:
        return f"<Async{repr(self._group)[1:]}"

    @classmethod
    async def open(
        cls, store: Any, zarr_format: int | None = None, use_consolidated: bool | str | None = None
    ) -> AsyncGroup:
        """Open the group at `store`."""
        from tessarr.core.hierarchy import open_group_async

        return cls(await open_group_async(store, mode="r+", zarr_format=zarr_format, use_consolidated=use_consolidated))

    async def getitem(self, key: str) -> AsyncArray | AsyncGroup:
        """The member at `key`. Raises `KeyError`."""
        return _wrapped(await self._group.getitem_async(key))

    async def get(self, key: str, default: Any = None) -> Any:
        """The member at `key`, or `default`."""
        try:
            return await self.getitem(key)
        except KeyError:
            return default

    async def setitem(self, key: str, value: Any) -> None:
        """Store an array-like as a member."""
        await self._group.create_array_async(key, data=value, overwrite=True)

    async def delitem(self, key: str) -> None:
        """Remove a member."""
        await self._group.delitem_async(key)

    async def contains(self, member: str) -> bool:
        """Whether there is such a member."""
        return await self._group.contains_async(member)

    async def members(
        self, max_depth: int | None = 0, **kwargs: Any
    ) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        """See `Group.members`."""
        for name, node in await self._group.members_async(max_depth):
            yield name, _wrapped(node)

    async def nmembers(self, max_depth: int | None = 0) -> int:
        """See `Group.nmembers`."""
        return await self._group.nmembers_async(max_depth)

    async def keys(self) -> AsyncIterator[str]:
        """Names of the members."""
        async for name, _ in self.members():
            yield name

    async def groups(self) -> AsyncIterator[tuple[str, AsyncGroup]]:
        """Names and subgroups."""
        async for name, node in self.members():
            if isinstance(node, AsyncGroup):
                yield name, node

    async def arrays(self) -> AsyncIterator[tuple[str, AsyncArray]]:
        """Names and arrays."""
        async for name, node in self.members():
            if isinstance(node, AsyncArray):
                yield name, node

    async def create_group(self, name: str, **kwargs: Any) -> AsyncGroup:
        """See `Group.create_group`."""
        return AsyncGroup(await self._group.create_group_async(name, **kwargs))

    async def require_group(self, name: str, **kwargs: Any) -> AsyncGroup:
        """See `Group.require_group`."""
        return AsyncGroup(await self._group.require_group_async(name, **kwargs))

    async def create_array(self, name: str, **kwargs: Any) -> AsyncArray:
        """See `Group.create_array`."""
        return AsyncArray(await self._group.create_array_async(name, **kwargs))

    async def require_array(self, name: str, **kwargs: Any) -> AsyncArray:
        """See `Group.require_array`."""
        return AsyncArray(await self._group.require_array_async(name, **kwargs))

    async def update_attributes(self, new_attributes: dict[str, Any]) -> AsyncGroup:
        """See `Group.update_attributes`."""
        await self._group.update_attributes_async(new_attributes)
        return self
