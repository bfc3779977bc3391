"""`AsyncArray`: the coroutines of an array, under zarr-python's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, Unpack, runtime_checkable

import numpy as np
import numpy.typing as npt

from tessarr import registry
from tessarr.common.output import output_of
from tessarr.common.warn import warn_as_zarr_python
from tessarr.core.array import Array
from tessarr.core.asynchronous.async_node import _AsyncNode
from tessarr.core.asynchronous.sans_io import run_steps_async
from tessarr.core.creation.array_config import ArrayConfigLike
from tessarr.core.locate import locate, requested_format
from tessarr.core.node import Node
from tessarr.core.stored.metadata_io import create_node_steps
from tessarr.errors import ZarrDeprecationWarning
from tessarr.metadata.public import ArrayV2Metadata, ArrayV3Metadata, model_of
from tessarr.stores.url import StoreLike
from tessarr.types import (
    AnyArray,
    AnyDType,
    Coords,
    Fields,
    OutputLike,
    Selected,
    SelectionLike,
    Shape,
    ShapeLike,
    ValuesLike,
)

if TYPE_CHECKING:
    from tessarr.core.info import ArrayInfo
    from tessarr.core.streams.follow import Follower, FollowOptions
    from tessarr.grids.base import ChunkGrid


_Within: TypeAlias = tuple[int | slice | npt.NDArray[np.intp], ...]
"""A selection of a chunk's elements, or of their places in a result, at full rank."""


@runtime_checkable
class Indexer(Protocol):
    """The chunks that a selection touches, as zarr-python lists them; packages derive indexers of their own from it.

    An item has the chunk's coords, the selection within it, the position in the result, and whether it is covered.
    """

    shape: Shape
    """Shape of the result."""
    drop_axes: tuple[int, ...]
    """Axes of the selections within chunks that the result does not have."""

    def __iter__(self) -> Iterator[tuple[Coords, _Within, _Within, bool]]: ...


class AsyncOIndex:
    """``array.oindex`` of an `AsyncArray`."""

    def __init__(self, array: AsyncArray) -> None:
        self._array = array

    async def getitem(self, selection: SelectionLike) -> Selected:
        """Read the outer product of the selections, asynchronously."""
        return await self._array.get_orthogonal_selection(selection)


class AsyncVIndex:
    """``array.vindex`` of an `AsyncArray`."""

    def __init__(self, array: AsyncArray) -> None:
        self._array = array

    async def getitem(self, selection: SelectionLike) -> Selected:
        """Read points, asynchronously."""
        return await self._array._node.get_point_selection_async(selection)


class AsyncArray(_AsyncNode):
    """An array whose methods that read or write are coroutines.

    Properties, and methods without a docstring here, are those of `Array` under the same name: the same arguments, result
    and errors.
    """

    _node: Array

    def __class_getitem__(cls, item: object) -> type[AsyncArray]:
        """Return the class: zarr-python's annotations name the kind of metadata, ``AsyncArray[ArrayV3Metadata]``."""
        return cls

    def __init__(self, metadata: object, store_path: StoreLike = None, config: ArrayConfigLike | None = None) -> None:
        """Wrap the `Array` given as `metadata`; or, as in zarr-python, metadata (`ArrayMetadata` or a document) and a place."""
        if not isinstance(metadata, Node):
            document = metadata if isinstance(metadata, Mapping) else model_of(metadata).to_dict()
            metadata = Array.from_dict(store_path, dict(document)).with_config(config)
        super().__init__(metadata)

    @classmethod
    async def open(
        cls, store: StoreLike, zarr_format: int | None = None, *, config: ArrayConfigLike | None = None
    ) -> AsyncArray:
        """Open the array at `store`."""
        where, here, mode = locate(store, None, None)
        steps = Array._open_steps(where, here, requested_format(store, zarr_format), mode, config)
        return cls(await run_steps_async(steps))

    @classmethod
    async def create(cls, store: StoreLike, **kwargs: object) -> AsyncArray:
        """Create an array as `Array.create` does, asynchronously."""
        warn_as_zarr_python("Use zarr.api.asynchronous.create_array instead.", ZarrDeprecationWarning)
        return cls(await registry.higher("tessarr.create_async")(store=store, **kwargs))

    @classmethod
    def from_dict(cls, store_path: StoreLike, data: Mapping[str, object]) -> AsyncArray:
        return cls(Array.from_dict(store_path, data))

    async def _save_metadata(self, metadata: object, ensure_parents: bool = True) -> None:
        """Write `metadata` as the array at this place, and missing groups above; pydantic-zarr creates arrays so.

        Chunks that are there stay, as in zarr-python. Raises `ContainsGroupError` where a group is.
        """
        node = self._node
        await run_steps_async(create_node_steps(node._store, node._path, model_of(metadata), keep=True))

    def with_config(self, config: ArrayConfigLike | None) -> AsyncArray:
        return AsyncArray(self._node.with_config(config))

    # -- properties ----------------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> ArrayV2Metadata | ArrayV3Metadata:
        return self._node.metadata

    @property
    def info(self) -> ArrayInfo:
        return self._node.info

    @property
    def config(self) -> Any:
        return self._node.config

    _config = config
    """zarr-python's name, which pydantic-zarr reads."""

    @property
    def _chunk_grid(self) -> ChunkGrid:
        return self._node._chunk_grid

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self._node.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._node.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._node.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self._node.nbytes

    @property
    def dtype(self) -> AnyDType:
        """NumPy dtype of elements in memory."""
        return self._node.dtype

    @property
    def order(self) -> str:
        """Memory layout of the arrays that reading returns: "C" or "F"."""
        return self._node.order

    @property
    def fill_value(self) -> Any:
        return self._node.fill_value

    @property
    def chunks(self) -> Shape:
        return self._node.chunks

    @property
    def shards(self) -> Shape | None:
        return self._node.shards

    @property
    def cdata_shape(self) -> Shape:
        """Number of chunks along each axis."""
        return self._node.cdata_shape

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return self._node.nchunks

    @property
    def read_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        return self._node.read_chunk_sizes

    @property
    def write_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        return self._node.write_chunk_sizes

    @property
    def filters(self) -> tuple[Any, ...]:
        return self._node.filters

    @property
    def serializer(self) -> Any:
        return self._node.serializer

    @property
    def compressors(self) -> tuple[Any, ...]:
        return self._node.compressors

    @property
    def compressor(self) -> Any:
        return self._node.compressor

    # -- reading and writing -------------------------------------------------------------------------------------------

    @property
    def oindex(self) -> AsyncOIndex:
        """Orthogonal indexing."""
        return AsyncOIndex(self)

    @property
    def vindex(self) -> AsyncVIndex:
        """Point indexing."""
        return AsyncVIndex(self)

    async def getitem(self, selection: SelectionLike, *, prototype: object = None) -> Selected:
        """Read ``array[selection]``. `prototype` has no effect."""
        return await self._node.read_async(selection)

    async def setitem(self, selection: SelectionLike, value: ValuesLike, prototype: object = None) -> None:
        """Write ``array[selection] = value``. `prototype` has no effect."""
        await self._node.write_async(selection, value)

    async def get_orthogonal_selection(
        self,
        selection: SelectionLike,
        *,
        out: OutputLike | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Selected:
        return await self._node.get_orthogonal_selection_async(selection, out=out, fields=fields)

    async def get_mask_selection(
        self,
        mask: npt.NDArray[np.bool_],
        *,
        out: OutputLike | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Selected:
        return await self._node.get_mask_selection_async(mask, out=out, fields=fields)

    async def get_coordinate_selection(
        self,
        selection: SelectionLike,
        *,
        out: OutputLike | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Selected:
        return await self._node.get_coordinate_selection_async(selection, out=out, fields=fields)

    async def _get_selection(
        self, indexer: Indexer, *, prototype: object = None, out: OutputLike | None = None
    ) -> AnyArray:
        """Read what `indexer` selects, which annbatch does by one of its own. `prototype` has no effect.

        `out` is filled, if given. Raises `ValueError` where its shape is another.
        """
        from tessarr.stores.remote.loop import gather_or_cancel

        node, axes, shape = self._node, self._node._bound.axes, tuple(indexer.shape)
        result = np.empty(shape, node.dtype) if out is None else output_of(out, shape, node.dtype).array
        if result.shape != shape:
            raise ValueError(f"out has shape {result.shape}; the selection has shape {shape}")
        parts = [*indexer]
        origins = ([axis.start(index) for axis, index in zip(axes, coords, strict=True)] for coords, *_ in parts)
        reads = [node.read_async(_moved(within, at)) for (_, within, *_), at in zip(parts, origins, strict=True)]
        for (_, _, place, _), values in zip(parts, await gather_or_cancel(reads), strict=True):
            result[place] = values.squeeze(axis=indexer.drop_axes) if indexer.drop_axes else values
        return result

    # -- changing, and what is stored ----------------------------------------------------------------------------------

    async def resize(self, new_shape: ShapeLike, delete_outside_chunks: bool = True) -> None:
        await self._node.resize_async(new_shape, delete_outside_chunks=delete_outside_chunks)

    async def append(
        self,
        data: npt.ArrayLike,
        axis: int = 0,
        *,
        on_hole: Literal["wait", "void", "error"] = "wait",
        expire: float = 600,
    ) -> Shape:
        return await self._node.append_async(data, axis, on_hole=on_hole, expire=expire)

    async def follow(self, **options: Unpack[FollowOptions]) -> Follower[AnyArray]:
        return await self._node.follow_async(**options)

    async def update_attributes(self, new_attributes: Mapping[str, object]) -> AsyncArray:
        await self._node.update_attributes_async(new_attributes)
        return self

    async def nbytes_stored(self) -> int:
        return await self._node.nbytes_stored_async()

    async def nchunks_initialized(self) -> int:
        return int(await self._node.nchunks_initialized_async())

    async def info_complete(self) -> ArrayInfo:
        return await self._node.info_complete_async()


def _moved(selection: _Within, origin: list[int]) -> _Within:
    """Return a selection within a chunk as one within the array, where the chunk begins at `origin`."""
    return tuple(
        slice(item.start + start, item.stop + start, item.step) if isinstance(item, slice) else item + start
        for item, start in zip(selection, origin, strict=True)
    )
