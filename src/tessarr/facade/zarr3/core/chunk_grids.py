"""zarr-python's ``zarr.core.chunk_grids``. Two of its classes are public: `ChunkGrid` and `ChunkSpec` of ``zarr.experimental``.

>>> grid = ChunkGrid.from_sizes((10, 6), ([4, 6], 4))
>>> grid.grid_shape, grid.chunk_sizes
((2, 2), ((4, 6), (4, 2)))
>>> grid[1, 1]
ChunkSpec(slices=(slice(4, 10, 1), slice(4, 6, 1)), codec_shape=(6, 4))
"""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, cast

from tessarr.errors import BaseZarrError
from tessarr.grids.base import Axis
from tessarr.grids.base import ChunkGrid as OurChunkGrid
from tessarr.grids.guess import guess_chunks as _guess_chunks
from tessarr.grids.rectilinear import RectilinearGrid
from tessarr.grids.regular import RegularGrid
from tessarr.types import Shape

if TYPE_CHECKING:
    from tessarr.metadata.public import ArrayV2Metadata, ArrayV3Metadata

RegularChunkGrid = RegularChunkGridMetadata = RegularGrid
RectilinearChunkGrid = RectilinearChunkGridMetadata = RectilinearGrid


@dataclass(frozen=True)
class ChunkSpec:
    """One chunk of an array."""

    slices: tuple[slice, ...]
    """Its elements within the array."""
    codec_shape: Shape
    """The shape that is encoded, elements beyond the array's edge included."""

    @property
    def shape(self) -> Shape:
        """The shape of its elements within the array."""
        return tuple(item.stop - item.start for item in self.slices)

    @property
    def is_boundary(self) -> bool:
        """Whether it extends beyond the array's edge."""
        return self.shape != self.codec_shape


class ChunkGrid(ABC):  # noqa: B024 - for `register`: in zarr-python 3.1 grids without a shape are instances
    """The chunks of one array: a grid of tessarr, and the array's shape. A sequence of `ChunkSpec`, in C order."""

    def __init__(self, grid: OurChunkGrid, array_shape: Shape) -> None:
        """Cut an array of `array_shape` by `grid`. Raises `ValueError` when `grid` does not cover the array."""
        self._grid = grid
        self._shape = array_shape
        self._axes = grid.axes(array_shape)

    @classmethod
    def from_sizes(cls, array_shape: int | Sequence[int], chunk_sizes: Sequence[int | Sequence[int]]) -> ChunkGrid:
        """Make the grid of an array of `array_shape` whose axes are cut into chunks of one size, or of a list of sizes.

        Raises `ValueError` for lists that do not cover their axis, and for another number of axes.
        """
        shape = (array_shape,) if isinstance(array_shape, int) else tuple(array_shape)
        if len(shape) != len(chunk_sizes):
            raise BaseZarrError(
                f"array_shape has {len(shape)} dimensions but chunk_sizes has {len(chunk_sizes)} dimensions"
            )
        if all(isinstance(size, int) for size in chunk_sizes):
            return cls(RegularGrid([size for size in chunk_sizes if isinstance(size, int)]), shape)
        if any(not isinstance(size, int) and not len(size) for size in chunk_sizes):
            raise BaseZarrError("edges must not be empty: an axis has at least one chunk length")
        return cls(RectilinearGrid([size if isinstance(size, int) else list(size) for size in chunk_sizes]), shape)

    @classmethod
    def from_metadata(cls, metadata: ArrayV2Metadata | ArrayV3Metadata) -> ChunkGrid:
        """Make the grid of an array with this metadata. Raises `TypeError` for a grid of an unknown class."""
        grid = RegularGrid(metadata.chunks) if metadata.zarr_format == 2 else metadata.chunk_grid
        if not isinstance(grid, OurChunkGrid):
            raise TypeError(f"Unknown chunk grid metadata type: {type(grid)}")
        return cls(grid, tuple(metadata.shape))

    def __repr__(self) -> str:
        sizes = [tuple(stated) if isinstance(stated, list) else stated for stated in self._stated()]
        return f"ChunkGrid(chunk_sizes=({', '.join(map(str, sizes))}), array_shape={self._shape})"

    def axes(self, shape: Shape) -> tuple[Axis, ...]:
        """Return the axes of an array of `shape`, as a grid of tessarr does."""
        return self._grid.axes(shape)

    def _stated(self) -> Sequence[object]:
        """The chunk length of each axis as stated: a number, or lengths."""
        if isinstance(self._grid, RegularGrid):
            return self._grid.chunk_shape
        configuration = cast("Mapping[str, Sequence[object]]", self._grid.to_json()["configuration"])
        return configuration["chunk_shapes"]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._axes)

    @property
    def is_regular(self) -> bool:
        """Whether each axis is cut into chunks of one stated size."""
        return all(isinstance(stated, int) for stated in self._stated())

    @property
    def grid_shape(self) -> Shape:
        """The number of chunks along each axis."""
        return tuple(axis.nchunks for axis in self._axes)

    @property
    def chunk_shape(self) -> Shape:
        """The shape of all chunks. Raises `ValueError` where the grid is not regular."""
        if not self.is_regular:
            raise BaseZarrError(
                "chunk_shape is only available for regular chunk grids. Use grid[coords] for per-chunk sizes."
            )
        return tuple(stated for stated in self._stated() if isinstance(stated, int))

    @property
    def chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """The sizes of the chunks along each axis, without what extends beyond the array's edge, as dask's ``chunks``."""
        return tuple(
            tuple(min(axis.size(i), axis.length - axis.start(i)) for i in range(axis.nchunks)) for axis in self._axes
        )

    def __getitem__(self, coords: int | tuple[int, ...]) -> ChunkSpec | None:
        """Return the chunk at `coords`; ``None`` where there is none."""
        found = (coords,) if isinstance(coords, int) else tuple(coords)
        if len(found) != self.ndim:
            raise BaseZarrError(f"Expected {self.ndim} coordinate(s) for a {self.ndim}-d chunk grid, got {len(found)}.")
        places = [*zip(self._axes, found, strict=True)]
        if not all(0 <= index < axis.nchunks for axis, index in places):
            return None
        starts = [axis.start(index) for axis, index in places]
        sizes = tuple(axis.size(index) for axis, index in places)
        return ChunkSpec(
            tuple(
                slice(start, min(start + size, axis.length), 1)
                for axis, start, size in zip(self._axes, starts, sizes, strict=True)
            ),
            sizes,
        )

    def __iter__(self) -> Iterator[ChunkSpec]:
        for coords in self.all_chunk_coords():
            spec = self[coords]
            assert spec is not None
            yield spec

    def all_chunk_coords(
        self, *, origin: Sequence[int] | None = None, selection_shape: Sequence[int] | None = None
    ) -> Iterator[tuple[int, ...]]:
        """Iterate over the coords of `selection_shape` chunks from `origin`; over all by default.

        Raises `IndexError` when the selection extends beyond the grid.
        """
        first = tuple(origin or (0,) * self.ndim)
        counts = selection_shape
        if counts is None:
            counts = [most - start for start, most in zip(first, self.grid_shape, strict=True)]
        for axis, (start, most, count) in enumerate(zip(first, self.grid_shape, counts, strict=True)):
            if start + count > most:
                raise IndexError(
                    f"Invalid selection shape ({count}) for origin ({start}) and grid shape ({most}) at axis {axis}."
                )
        return itertools.product(*(range(start, start + count) for start, count in zip(first, counts, strict=True)))

    def iter_chunk_regions(
        self, *, origin: Sequence[int] | None = None, selection_shape: Sequence[int] | None = None
    ) -> Iterator[tuple[slice, ...]]:
        """Iterate over the elements of the chunks that `all_chunk_coords` yields, as slices."""
        for coords in self.all_chunk_coords(origin=origin, selection_shape=selection_shape):
            spec = self[coords]
            if spec is not None:
                yield spec.slices

    def get_nchunks(self) -> int:
        """Return the number of chunks."""
        return prod(self.grid_shape)

    def update_shape(self, new_shape: Shape) -> ChunkGrid:
        """Return the grid of the array after a resize; an axis whose lengths do not reach its end gets one more chunk."""
        if len(new_shape) != self.ndim:
            raise BaseZarrError(f"new_shape has {len(new_shape)} dimensions but chunk grid has {self.ndim} dimensions")
        grid = self._grid.covering(new_shape) if isinstance(self._grid, RectilinearGrid) else self._grid
        return ChunkGrid(grid, tuple(new_shape))


ChunkGrid.register(RegularGrid)
ChunkGrid.register(RectilinearGrid)

__all__ = [
    "ChunkGrid",
    "ChunkSpec",
    "RectilinearChunkGrid",
    "RectilinearChunkGridMetadata",
    "RegularChunkGrid",
    "RegularChunkGridMetadata",
    "_guess_chunks",
]
