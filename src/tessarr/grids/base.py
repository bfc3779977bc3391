"""The contract of a chunk grid: how an array's index space is cut into chunks, axis by axis.

A grid is separable: each axis is cut independently, and a chunk is the product of one interval per axis. No lookup takes
time proportional to the number of chunks.

Source: Zarr v3.1 core, "Chunk grids".
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol, Self

from tessarr.common.to_from_dict import ToDict
from tessarr.types import JSON, AnyArray, JSONObject, Shape


class Axis(Protocol):
    """Cut an axis of `length` elements into `nchunks` intervals that start at 0 and touch."""

    length: int
    """Elements of the array along this axis."""
    nchunks: int
    """Chunks that hold at least one element of the array; 0 when `length` is 0."""

    def start(self, index: int) -> int:
        """Return the first element of chunk `index`."""
        ...

    def size(self, index: int) -> int:
        """Return how many elements chunk `index` stores, the part beyond the array's edge included."""
        ...

    def find(self, position: int) -> int:
        """Return the chunk that holds element `position` (``0 <= position < length``)."""
        ...

    def find_many(self, positions: AnyArray) -> AnyArray:
        """Apply `find` to an int64 array; int64 result of the same shape."""
        ...

    @property
    def uniform(self) -> int | None:
        """The size of every chunk when they are all equal, else ``None``."""
        ...


class ChunkGrid(ToDict):
    """A chunk grid of one array. Immutable, equal by value."""

    name: ClassVar[str]
    diagnostics: tuple[str, ...] = ()
    """Descriptions of what is unusual about the document that this grid was parsed from."""

    def get_nchunks(self, array_shape: Shape) -> int:
        """Return the number of chunks of an array of `array_shape`."""
        return math.prod(axis.nchunks for axis in self.axes(array_shape))

    @classmethod
    @abstractmethod
    def from_json(cls, configuration: Mapping[str, JSON], shape: Shape) -> Self:
        """Parse a v3 ``chunk_grid`` configuration. Raises `MetadataValidationError` listing every problem."""

    @abstractmethod
    def to_json(self) -> JSONObject:
        """Return the v3 ``chunk_grid`` object."""

    @abstractmethod
    def axes(self, shape: Shape) -> tuple[Axis, ...]:
        """Return an `Axis` per dimension of an array of `shape`. Raises `ValueError` when the grid cannot cover
        `shape`.
        """

    @property
    @abstractmethod
    def chunk_shape(self) -> Shape | None:
        """The shape that all chunks have, or ``None`` when they differ."""
