"""Describe the chunk grid and the codecs of an array: chunks, shards, filters, compressors, under zarr-python's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes
from tessarr.common.warn import warn
from tessarr.core.array_parts.state import ArrayState
from tessarr.errors import BoundsCheckError, ZarrDeprecationWarning
from tessarr.grids.base import Axis, ChunkGrid
from tessarr.grids.regular import RegularAxis
from tessarr.registry import get_numcodec
from tessarr.settings import config as settings
from tessarr.types import Shape

if TYPE_CHECKING:
    from tessarr.codecs.sharding import ShardingCodec


class ChunkProperties(ArrayState):
    """Describe the chunks and codecs of an array. Base of `Array`."""

    @property
    def _chunk_axes(self) -> Sequence[Axis]:
        """The axes cut into chunks; with shards into inner chunks (`_bound.axes` are cut into stored values)."""
        if self._sharding is None:
            return self._bound.axes
        return [RegularAxis(n, m) for n, m in zip(self.shape, self._sharding.chunk_shape, strict=True)]

    @property
    def _chunk_grid(self) -> ChunkGrid:
        """The grid of stored chunks: zarr-python's name, by which annbatch makes its indexers."""
        return self._metadata.chunk_grid

    @property
    def _sharding(self) -> ShardingCodec | None:
        codecs = self._metadata.codecs
        if len(codecs) != 1:
            return None
        from tessarr.codecs.sharding import ShardingCodec

        return codecs[0] if isinstance(codecs[0], ShardingCodec) else None

    @property
    def chunks(self) -> Shape:
        """Shape of a chunk (an inner chunk, where there are shards).

        Raises `NotImplementedError` when chunks differ in shape; see `read_chunk_sizes`.
        """
        return self._sharding.chunk_shape if self._sharding else self._metadata.chunks

    @property
    def shards(self) -> Shape | None:
        """Shape of a shard; ``None`` without shards. Raises `NotImplementedError` when shards differ in shape."""
        return self._metadata.chunks if self._sharding else None

    def chunk_key(self, coords: Sequence[int]) -> str:
        """Return the store key of the chunk (with shards: the shard) at grid index `coords`.

        Raises `BoundsCheckError` when the grid has no such chunk.

        >>> import tessarr
        >>> z = tessarr.create_array({}, name="x", shape=(4, 4), chunks=(2, 2), dtype="i1")
        >>> z.chunk_key((1, 0))
        'x/c/1/0'
        """
        axes = self._bound.axes
        if len(coords) != len(axes) or not all(0 <= i < axis.nchunks for i, axis in zip(coords, axes, strict=True)):
            grid = tuple(axis.nchunks for axis in axes)
            raise BoundsCheckError("no such chunk", expected=f"an index within the grid {grid}", got=tuple(coords))
        return self._bound.key(tuple(coords))

    @property
    def write_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Sizes of the chunks (with shards: the shards) along each axis, clipped to the array: the unit of writing."""
        return tuple(_sizes(axis) for axis in self._bound.axes)

    @property
    def read_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Sizes of the chunks (with shards: the inner chunks) along each axis, clipped to the array: the unit of reading."""
        return tuple(_sizes(axis) for axis in self._chunk_axes)

    @property
    def cdata_shape(self) -> Shape:
        """Number of chunks along each axis."""
        return tuple(axis.nchunks for axis in self._chunk_axes)

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return prod(self.cdata_shape)

    @property
    def nshards(self) -> int | None:
        """Number of shards; ``None`` without shards."""
        return prod(axis.nchunks for axis in self._bound.axes) if self._sharding else None

    @property
    def _stages(self) -> tuple[object, ...]:
        return self._sharding.codecs if self._sharding else self._metadata.codecs

    @property
    def filters(self) -> tuple[Any, ...]:
        """v3: the array → array codecs (of inner chunks, where there are shards); v1, v2: the numcodecs filters."""
        if self.zarr_format != 3:
            return tuple(get_numcodec(config) for config in self._metadata.filters or ())
        return tuple(codec for codec in self._stages if isinstance(codec, ArrayToArray))

    @property
    def serializer(self) -> ArrayToBytes | None:
        """v3: the array → bytes codec (of inner chunks, where there are shards); ``None`` in v1 and v2."""
        if self.zarr_format != 3:
            return None
        return next(codec for codec in self._stages if isinstance(codec, ArrayToBytes))

    @property
    def compressors(self) -> tuple[Any, ...]:
        """v3: the bytes → bytes codecs (of inner chunks, where there are shards); v1, v2: the numcodecs compressor."""
        if self.zarr_format != 3:
            config = self._metadata.compressor
            return (get_numcodec(config),) if isinstance(config, Mapping) else ()
        return tuple(codec for codec in self._stages if isinstance(codec, BytesToBytes))

    @property
    def compressor(self) -> Any:
        """The compressor of a v1 or v2 array; ``None`` when it has none. Raises `TypeError` for v3; see `compressors`."""
        if self.zarr_format == 3:
            raise TypeError("`compressor` is not defined for Zarr v3 arrays, which may have several; use `compressors`")
        if settings.get("zarr_python.arguments"):
            warn("Use Array.compressors instead.", ZarrDeprecationWarning)
        return next(iter(self.compressors), None)

    def _repr_html_(self) -> str:
        """Describe the array for notebooks, without reading the store: facts, attributes, and a drawing of its grid."""
        from tessarr.core.notebook.describe import array_html

        return array_html(self)


def _sizes(axis: Axis) -> tuple[int, ...]:
    return tuple(min(axis.size(i), axis.length - axis.start(i)) for i in range(axis.nchunks))
