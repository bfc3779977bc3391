"""`AsyncGroup`: the coroutines of a group, under zarr-python's names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy.typing as npt

from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.core.asynchronous.async_array import AsyncArray
from tessarr.core.asynchronous.async_node import _AsyncNode, wrapped
from tessarr.core.asynchronous.sans_io import run_steps_async
from tessarr.core.creation.array_config import DEFAULT, ArrayConfigLike
from tessarr.core.group import Group
from tessarr.core.locate import format_of_new, locate, requested_format
from tessarr.core.node import Node
from tessarr.dtypes.parse import DTypeLike
from tessarr.grids.guess import ChunksLike, ShardsLike
from tessarr.keys.base import ChunkKeyEncodingLike
from tessarr.metadata.group import GroupMetadata
from tessarr.stores.url import StoreLike
from tessarr.types import AnyArray, JSONObject, ShapeLike

if TYPE_CHECKING:
    from tessarr.core.creation.arguments import (
        DatasetOptions,
        FilledOptions,
        MemberOptions,
        RequireOptions,
        ShapedOptions,
    )
    from tessarr.core.info import GroupInfo
    from tessarr.core.streams.follow import Follower, FollowOptions
    from tessarr.core.tree import TreeView


class AsyncGroup(_AsyncNode):
    """A group whose methods that read or write are coroutines; iterators are async generators.

    Properties, and methods without a docstring here, are those of `Group` under the same name: the same arguments, result
    and errors.
    """

    _node: Group

    def __init__(self, metadata: Any, store_path: StoreLike = None) -> None:
        """Wrap the `Group` given as `metadata`; or, as in zarr-python, metadata (`GroupMetadata` or a document) and a place."""
        if not isinstance(metadata, Node):
            metadata = Group.from_dict(store_path, metadata)
        super().__init__(metadata)

    @classmethod
    async def open(
        cls, store: StoreLike, zarr_format: int | None = None, use_consolidated: bool | str | None = None
    ) -> AsyncGroup:
        """Open the group at `store`."""
        where, here, mode = locate(store, None, None)
        number, existing = requested_format(store, zarr_format), "r" if mode == "r" else "r+"
        return cls(await run_steps_async(Group._open_steps(where, here, number, existing, use_consolidated)))

    async def follow(self, names: Sequence[str], **options: Unpack[FollowOptions]) -> Follower[dict[str, AnyArray]]:
        return await self._node.follow_async(names, **options)

    @classmethod
    async def from_store(
        cls,
        store: StoreLike,
        *,
        attributes: Mapping[str, object] | None = None,
        overwrite: bool = False,
        zarr_format: int = 3,
    ) -> AsyncGroup:
        where, here, _ = locate(store, None, "w" if overwrite else None)
        number = format_of_new(store, zarr_format)
        return cls(await run_steps_async(Group._create_steps(where, here, number, attributes, overwrite)))

    @classmethod
    def from_dict(cls, store_path: StoreLike, data: Mapping[str, object]) -> AsyncGroup:
        return cls(data, store_path)

    async def getitem(self, key: str) -> AsyncArray | AsyncGroup:
        """Open the member at `key`. Raises `KeyError`."""
        found: AsyncArray | AsyncGroup = wrapped(await self._node.getitem_async(key))
        return found

    async def get(self, key: str, default: object = None) -> Any:
        """Open the member at `key`, or return `default`."""
        try:
            return await self.getitem(key)
        except KeyError:
            return default

    async def setitem(self, key: str, value: npt.ArrayLike) -> None:
        """Store an array-like as a member."""
        await self._node.setitem_async(key, value)

    async def delitem(self, key: str) -> None:
        """Remove a member."""
        await self._node.delitem_async(key)

    async def contains(self, member: str) -> bool:
        """Whether the group has a member `member`."""
        return bool(await self._node.contains_async(member))

    async def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        again = {"use_consolidated_for_children": use_consolidated_for_children}
        for name, node in await self._node.members_async(max_depth, **again):
            yield name, wrapped(node)

    def keys(self) -> AsyncIterator[str]:
        """Iterate over the names of the members."""
        return (name async for name, _ in self.members())

    def groups(self) -> AsyncIterator[tuple[str, AsyncGroup]]:
        """Iterate over ``(name, subgroup)``."""
        return ((name, node) async for name, node in self.members() if isinstance(node, AsyncGroup))

    def group_keys(self) -> AsyncIterator[str]:
        """Iterate over the names of the subgroups."""
        return (name async for name, _ in self.groups())

    def group_values(self) -> AsyncIterator[AsyncGroup]:
        """Iterate over the subgroups."""
        return (node async for _, node in self.groups())

    def arrays(self) -> AsyncIterator[tuple[str, AsyncArray]]:
        """Iterate over ``(name, array)``."""
        return ((name, node) async for name, node in self.members() if isinstance(node, AsyncArray))

    def array_keys(self) -> AsyncIterator[str]:
        """Iterate over the names of the arrays."""
        return (name async for name, _ in self.arrays())

    def array_values(self) -> AsyncIterator[AsyncArray]:
        """Iterate over the arrays."""
        return (node async for _, node in self.arrays())

    async def create_hierarchy(
        self, nodes: Mapping[str, object], *, overwrite: bool = False
    ) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        for path, node in await self._node.create_hierarchy_async(nodes, overwrite=overwrite):
            yield path, wrapped(node)

    async def update_attributes(self, new_attributes: Mapping[str, object]) -> AsyncGroup:
        await self._node.update_attributes_async(new_attributes)
        return self

    # -- members by path -----------------------------------------------------------------------------------------------

    async def create_dataset(self, name: str, **kwargs: Unpack[DatasetOptions]) -> AsyncArray:
        """Create an array below this group, as `Group.create_dataset` does."""
        return AsyncArray(await self._node.create_dataset_async(name, **kwargs))

    async def get_array(self, path: str) -> AsyncArray:
        return AsyncArray(await self._node.get_array_async(path))

    async def get_group(self, path: str) -> AsyncGroup:
        return AsyncGroup(await self._node.get_group_async(path))

    async def nmembers(self, max_depth: int | None = 0) -> int:
        return await self._node.nmembers_async(max_depth)

    async def tree(
        self, expand: bool | None = None, level: int | None = None, *, max_nodes: int = 500, plain: bool = False
    ) -> TreeView:
        return await self._node.tree_async(expand, level, max_nodes=max_nodes, plain=plain)

    async def info_complete(self) -> GroupInfo:
        return await self._node.info_complete_async()

    # -- creating ------------------------------------------------------------------------------------------------------

    async def create_group(
        self, name: str, overwrite: bool = False, *, attributes: Mapping[str, object] | None = None
    ) -> AsyncGroup:
        return AsyncGroup(await self._node.create_group_async(name, overwrite, attributes=attributes))

    async def require_group(self, name: str, overwrite: bool = False, **kwargs: object) -> AsyncGroup:
        return AsyncGroup(await self._node.require_group_async(name, overwrite, **kwargs))

    async def require_groups(self, *names: str) -> tuple[AsyncGroup, ...]:
        return tuple(map(AsyncGroup, await self._node.require_groups_async(*names)))

    async def create_array(
        self,
        name: str,
        *,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        data: npt.ArrayLike | None = None,
        chunks: ChunksLike = "auto",
        shards: ShardsLike = None,
        filters: CodecsLike = "auto",
        compressors: CodecsLike = "auto",
        compressor: CodecLike | None = "auto",
        serializer: CodecLike | None = "auto",
        fill_value: object = DEFAULT,
        order: str | None = None,
        attributes: Mapping[str, object] | None = None,
        chunk_key_encoding: ChunkKeyEncodingLike | None = None,
        dimension_names: Iterable[str | None] | None = None,
        storage_options: Mapping[str, object] | None = None,
        overwrite: bool = False,
        config: ArrayConfigLike | None = None,
        write_data: bool = True,
        zarr_format: int | None = None,
        storage_transformers: Sequence[JSONObject] = (),
        object_codec: CodecLike | None = None,
    ) -> AsyncArray:
        """Create an array below this group, as `Group.create_array` does."""
        made = await self._node.create_array_async(
            name,
            shape=shape,
            dtype=dtype,
            data=data,
            chunks=chunks,
            shards=shards,
            filters=filters,
            compressors=compressors,
            compressor=compressor,
            serializer=serializer,
            fill_value=fill_value,
            order=order,
            attributes=attributes,
            chunk_key_encoding=chunk_key_encoding,
            dimension_names=dimension_names,
            storage_options=storage_options,
            overwrite=overwrite,
            config=config,
            write_data=write_data,
            zarr_format=zarr_format,
            storage_transformers=storage_transformers,
            object_codec=object_codec,
        )
        return AsyncArray(made)

    async def require_array(
        self,
        name: str,
        *,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        exact: bool = False,
        config: ArrayConfigLike | None = None,
        **kwargs: Unpack[RequireOptions],
    ) -> AsyncArray:
        found = await self._node.require_array_async(
            name, shape=shape, dtype=dtype, exact=exact, config=config, **kwargs
        )
        return AsyncArray(found)

    async def empty(self, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> AsyncArray:
        return AsyncArray(await self._node.empty_async(name, shape, **kwargs))

    async def zeros(self, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> AsyncArray:
        return AsyncArray(await self._node.zeros_async(name, shape, **kwargs))

    async def ones(self, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> AsyncArray:
        return AsyncArray(await self._node.ones_async(name, shape, **kwargs))

    async def full(
        self, name: str, fill_value: object, *, shape: ShapeLike, **kwargs: Unpack[MemberOptions]
    ) -> AsyncArray:
        return AsyncArray(await self._node.full_async(name, fill_value, shape=shape, **kwargs))

    async def empty_like(self, name: str, data: object, **kwargs: Unpack[ShapedOptions]) -> AsyncArray:
        return AsyncArray(await self._node.empty_like_async(name, data, **kwargs))

    async def zeros_like(self, name: str, data: object, **kwargs: Unpack[ShapedOptions]) -> AsyncArray:
        return AsyncArray(await self._node.zeros_like_async(name, data, **kwargs))

    async def ones_like(self, name: str, data: object, **kwargs: Unpack[ShapedOptions]) -> AsyncArray:
        return AsyncArray(await self._node.ones_like_async(name, data, **kwargs))

    async def full_like(self, name: str, data: object, **kwargs: Unpack[ShapedOptions]) -> AsyncArray:
        return AsyncArray(await self._node.full_like_async(name, data, **kwargs))

    async def move(self, source: str, dest: str) -> None:
        await self._node.move_async(source, dest)

    # -- properties ----------------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> GroupMetadata:
        """The metadata."""
        return self._node.metadata

    @property
    def info(self) -> GroupInfo:
        """A readable summary, without reading members."""
        return self._node.info

    @property
    def synchronizer(self) -> None:
        """Always ``None``: the store locks. Kept for code written for zarr-python 2."""
        return self._node.synchronizer
