"""Create arrays in a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from tessarr.codecs.parse import CodecLike, CodecsLike
from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import async_variant, sans_io, steps_of
from tessarr.core.creation.array_config import DEFAULT, ArrayConfigLike
from tessarr.core.creation.arrays import create, create_array
from tessarr.core.creation.zarr_python_arguments import check_compressor
from tessarr.core.group_parts.members import Members
from tessarr.dtypes.parse import DTypeLike, from_numpy
from tessarr.errors import IncompatibleNodeError
from tessarr.grids.guess import ChunksLike, ShardsLike
from tessarr.keys.base import ChunkKeyEncodingLike
from tessarr.types import JSONObject, ShapeLike

if TYPE_CHECKING:
    from tessarr.core.creation.arguments import RequireOptions


class ArrayCreation(Members):
    """Create arrays in a group. Base of `Group`."""

    @sans_io
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
    ) -> Array:
        """Create an array below this group; the keywords are those of `tessarr.create_array`, and v2's `compressor`."""
        self._will_change()
        await self._require_current_steps()
        if not isinstance(compressor, str):
            if not isinstance(compressors, str):
                raise ValueError("give either compressors or compressor")
            check_compressor(zarr_format or self.zarr_format)
            compressors = compressor
        creating = steps_of(create_array)(
            self._store,
            name=self._join(name),
            shape=shape,
            dtype=dtype,
            data=data,
            chunks=chunks,
            shards=shards,
            filters=filters,
            compressors=compressors,
            serializer=serializer,
            fill_value=fill_value,
            order=order,
            zarr_format=zarr_format or self.zarr_format,
            attributes=attributes,
            chunk_key_encoding=chunk_key_encoding,
            dimension_names=dimension_names,
            storage_options=storage_options,
            overwrite=overwrite,
            config=config,
            write_data=write_data,
            storage_transformers=storage_transformers,
            object_codec=object_codec,
        )
        return await self._described_steps(creating)

    @sans_io
    async def create(
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
        **kwargs: Any,
    ) -> Array:
        """Create an array below this group, with the keywords and defaults of `tessarr.create`."""
        self._will_change()
        await self._require_current_steps()
        creating = steps_of(create)(
            store=self._store,
            path=self._join(name),
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
            zarr_format=zarr_format or self.zarr_format,
            storage_transformers=storage_transformers,
            object_codec=object_codec,
            **kwargs,
        )
        return await self._described_steps(creating)

    @sans_io
    async def require_array(
        self,
        name: str,
        *,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        exact: bool = False,
        config: ArrayConfigLike | None = None,
        **kwargs: Unpack[RequireOptions],
    ) -> Array:
        """Open the array `name`, creating it if it is missing.

        Raises `TypeError` when the existing array has another shape, or a dtype that cannot be cast safely to `dtype` (with
        `exact`: another dtype), `IncompatibleNodeError` when a group is there.
        """
        found = await self._get_required_steps(name)
        if found is None:
            make = steps_of(ArrayCreation.create)
            return await make(self, name, shape=shape, dtype=dtype, config=config, **kwargs)
        if not isinstance(found, Array):
            path = f"/{self._join(name)}"
            raise IncompatibleNodeError("Incompatible object: a group, not an array", store=self._store.url, path=path)
        wanted = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        if found.shape != wanted:
            raise TypeError(f"Incompatible shape: array {found.name} has {found.shape}, not {wanted}")
        if dtype is not None and not _serves(found, dtype, exact):
            raise TypeError(f"Incompatible dtype: array {found.name} has {found.dtype}, not {dtype}")
        return found if config is None else found.with_config(config)

    @sans_io
    async def __setitem__(self, name: str, value: npt.ArrayLike) -> None:
        """Store an array-like as the array `name`, replacing a member of that name."""
        await steps_of(ArrayCreation.create_array)(self, name, data=value, overwrite=True)

    setitem_async = async_variant(__setitem__)
    create_array_async = async_variant(create_array)
    create_async = async_variant(create)
    require_array_async = async_variant(require_array)


def _serves(found: Array, dtype: DTypeLike, exact: bool) -> bool:
    data_type = from_numpy(dtype)
    wanted = data_type.with_byteorder("=").dtype
    if exact or wanted.kind in "OT" or found.dtype.kind in "OT":
        return found._metadata.data_type.with_byteorder("=").dtype == wanted
    return np.can_cast(found.dtype, wanted)


def fits(dtype: DTypeLike, found: Array) -> bool:
    """Whether `found` can hold elements of `dtype` safely."""
    given = from_numpy(dtype).with_byteorder("=").dtype
    if given.kind in "OT" or found.dtype.kind in "OT":
        return given == found.dtype
    return np.can_cast(given, found.dtype)
