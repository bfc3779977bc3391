"""`AsyncArray` and `AsyncGroup`: the asynchronous surface under zarr-python's names.

They hold an `Array` or `Group` and forward to its ``_async`` methods; everything else (shape, dtype, attributes …) is the
same attribute of the node they hold.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import numpy.typing as npt

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.metadata.public import model_of


def wrapped(value: Any) -> Any:
    """Arrays and groups in their asynchronous form, also within a tuple; anything else as it is."""
    if isinstance(value, tuple) and value and all(isinstance(item, Array | Group) for item in value):
        return tuple(map(wrapped, value))
    if isinstance(value, Array):
        return AsyncArray(value)
    return AsyncGroup(value) if isinstance(value, Group) else value


def _awaited(function: Callable[..., Any]) -> Any:
    """The method of an asynchronous node that calls the ``_async`` twin of `function`, with the same arguments."""

    @functools.wraps(function)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapped(await getattr(self._node, f"{function.__name__}_async")(*args, **kwargs))

    call.__doc__ = f"See `{function.__qualname__}`."
    return call


def _same(kind: type[Any], names: str) -> dict[str, property]:
    """Properties that are those of the node that is held."""

    def one(name: str) -> property:
        doc = getattr(getattr(kind, name), "__doc__", None)
        return property(lambda self: getattr(self._node, name), doc=doc)

    return {name: one(name) for name in names.split()}


class AsyncOIndex:
    """``array.oindex`` of an `AsyncArray`."""

    def __init__(self, array: Any) -> None:
        self._array = array

    async def getitem(self, selection: Any) -> Any:
        """Read the outer product of the selections, asynchronously."""
        return await self._array.get_orthogonal_selection(selection)


class AsyncVIndex:
    """``array.vindex`` of an `AsyncArray`."""

    def __init__(self, array: Any) -> None:
        self._array = array

    async def getitem(self, selection: Any) -> Any:
        """Read points, asynchronously."""
        return await self._array._node.get_point_selection_async(selection)


class _AsyncNode:
    """What both kinds have."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        if name == "_node":  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self._node, name)

    def __repr__(self) -> str:
        return f"<Async{repr(self._node)[1:]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and bool(self._node == other._node)

    def __hash__(self) -> int:
        return hash(self._node)


class AsyncArray(_AsyncNode):
    """An `Array` whose reading and writing are coroutines."""

    def __init__(self, metadata: Any, store_path: Any = None, config: Any = None) -> None:
        """`metadata`: the array to hold; or, as in zarr-python, metadata (`ArrayMetadata` or a document) and its place."""
        if not isinstance(metadata, Array):
            document = metadata if isinstance(metadata, Mapping) else model_of(metadata).to_dict()
            metadata = Array.from_dict(store_path, dict(document)).with_config(config)
        super().__init__(metadata)

    @classmethod
    async def open(cls, store: Any, zarr_format: int | None = None, *, config: Any = None) -> AsyncArray:
        """Open the array at `store`."""
        from tessarr.core.open import open_array_async

        return cls(await open_array_async(store, zarr_format=zarr_format, config=config))

    @classmethod
    def from_dict(cls, store_path: Any, data: dict[str, Any]) -> AsyncArray:
        """See `Array.from_dict`."""
        return cls(Array.from_dict(store_path, data))

    def with_config(self, config: Any) -> AsyncArray:
        """See `Array.with_config`."""
        return AsyncArray(self._node.with_config(config))

    @property
    def oindex(self) -> AsyncOIndex:
        """Orthogonal indexing."""
        return AsyncOIndex(self)

    @property
    def vindex(self) -> AsyncVIndex:
        """Point indexing."""
        return AsyncVIndex(self)

    async def getitem(self, selection: Any, *, prototype: Any = None) -> Any:
        """Call ``array[selection]`` asynchronously."""
        return await self._node.read_async(selection)

    async def setitem(self, selection: Any, value: npt.ArrayLike, prototype: Any = None) -> None:
        """Call ``array[selection] = value`` asynchronously."""
        await self._node.write_async(selection, value)

    async def get_orthogonal_selection(
        self, selection: Any, *, out: Any = None, fields: Any = None, prototype: Any = None
    ) -> Any:
        """See `Array.get_orthogonal_selection`."""
        return await self._node.get_orthogonal_selection_async(selection, out=out, fields=fields)

    async def get_mask_selection(self, mask: Any, *, out: Any = None, fields: Any = None, prototype: Any = None) -> Any:
        """See `Array.get_mask_selection`."""
        return await self._node.get_mask_selection_async(mask, out=out, fields=fields)

    async def get_coordinate_selection(
        self, selection: Any, *, out: Any = None, fields: Any = None, prototype: Any = None
    ) -> Any:
        """See `Array.get_coordinate_selection`."""
        return await self._node.get_coordinate_selection_async(selection, out=out, fields=fields)

    async def resize(self, new_shape: Any, delete_outside_chunks: bool = True) -> None:
        """See `Array.resize`."""
        await self._node.resize_async(new_shape, delete_outside_chunks=delete_outside_chunks)

    append = _awaited(Array.append)
    nbytes_stored = _awaited(Array.nbytes_stored)
    info_complete = _awaited(Array.info_complete)

    async def update_attributes(self, new_attributes: dict[str, Any]) -> AsyncArray:
        """See `Array.update_attributes`."""
        await self._node.update_attributes_async(new_attributes)
        return self

    async def nchunks_initialized(self) -> int:
        """See `Array.nchunks_initialized`."""
        return int(await self._node.nchunks_initialized_async())


class AsyncGroup(_AsyncNode):
    """A `Group` whose access to members is asynchronous; iterators are async generators."""

    def __init__(self, metadata: Any, store_path: Any = None) -> None:
        """`metadata`: the group to hold; or, as in zarr-python, metadata (`GroupMetadata` or a document) and its place."""
        if not isinstance(metadata, Group):
            metadata = Group.from_dict(store_path, metadata)
        super().__init__(metadata)

    @classmethod
    async def open(
        cls, store: Any, zarr_format: int | None = None, use_consolidated: bool | str | None = None
    ) -> AsyncGroup:
        """Open the group at `store`."""
        from tessarr.core.open import open_group_async

        return cls(await open_group_async(store, mode="r+", zarr_format=zarr_format, use_consolidated=use_consolidated))

    @classmethod
    async def from_store(
        cls, store: Any, *, attributes: Mapping[str, Any] | None = None, overwrite: bool = False, zarr_format: int = 3
    ) -> AsyncGroup:
        """See `Group.from_store`."""
        from tessarr.core.open import create_group_async

        made = create_group_async(store, attributes=attributes, overwrite=overwrite, zarr_format=zarr_format)
        return cls(await made)

    @classmethod
    def from_dict(cls, store_path: Any, data: dict[str, Any]) -> AsyncGroup:
        """See `Group.from_dict`."""
        return cls(data, store_path)

    async def getitem(self, key: str) -> AsyncArray | AsyncGroup:
        """The member at `key`. Raises `KeyError`."""
        found: AsyncArray | AsyncGroup = wrapped(await self._node.getitem_async(key))
        return found

    async def get(self, key: str, default: Any = None) -> Any:
        """The member at `key`, or `default`."""
        try:
            return await self.getitem(key)
        except KeyError:
            return default

    async def setitem(self, key: str, value: Any) -> None:
        """Store an array-like as a member."""
        await self._node.setitem_async(key, value)

    async def delitem(self, key: str) -> None:
        """Remove a member."""
        await self._node.delitem_async(key)

    async def contains(self, member: str) -> bool:
        """Whether there is such a member."""
        return bool(await self._node.contains_async(member))

    async def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        """See `Group.members`."""
        again = {"use_consolidated_for_children": use_consolidated_for_children}
        for name, node in await self._node.members_async(max_depth, **again):
            yield name, wrapped(node)

    def keys(self) -> AsyncIterator[str]:
        """Names of the members."""
        return (name async for name, _ in self.members())

    def groups(self) -> AsyncIterator[tuple[str, AsyncGroup]]:
        """Names and subgroups."""
        return ((name, node) async for name, node in self.members() if isinstance(node, AsyncGroup))

    def group_keys(self) -> AsyncIterator[str]:
        """Names of the subgroups."""
        return (name async for name, _ in self.groups())

    def group_values(self) -> AsyncIterator[AsyncGroup]:
        """The subgroups."""
        return (node async for _, node in self.groups())

    def arrays(self) -> AsyncIterator[tuple[str, AsyncArray]]:
        """Names and arrays."""
        return ((name, node) async for name, node in self.members() if isinstance(node, AsyncArray))

    def array_keys(self) -> AsyncIterator[str]:
        """Names of the arrays."""
        return (name async for name, _ in self.arrays())

    def array_values(self) -> AsyncIterator[AsyncArray]:
        """The arrays."""
        return (node async for _, node in self.arrays())

    async def create_hierarchy(
        self, nodes: Mapping[str, Any], *, overwrite: bool = False
    ) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        """See `Group.create_hierarchy`."""
        for path, node in await self._node.create_hierarchy_async(nodes, overwrite=overwrite):
            yield path, wrapped(node)

    async def update_attributes(self, new_attributes: dict[str, Any]) -> AsyncGroup:
        """See `Group.update_attributes`."""
        await self._node.update_attributes_async(new_attributes)
        return self


_FORWARDED = (
    "get_array get_group nmembers create_group require_group require_groups create_array require_array tree move "
    "info_complete empty zeros ones full empty_like zeros_like ones_like full_like"
)
for _name in _FORWARDED.split():
    setattr(AsyncGroup, _name, _awaited(getattr(Group, _name)))

_BOTH = "attrs basename info metadata name path read_only store store_path"
_ARRAY = (
    "cdata_shape chunks compressor compressors config dtype fill_value filters nbytes nchunks ndim order read_chunk_sizes "
    "serializer shape shards size write_chunk_sizes"
)
for _kind, _sync, _names in ((AsyncArray, Array, f"{_BOTH} {_ARRAY}"), (AsyncGroup, Group, f"{_BOTH} synchronizer")):
    for _name, _property in _same(_sync, _names).items():
        setattr(_kind, _name, _property)
