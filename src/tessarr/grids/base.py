"""The contract of a chunk grid: how an array's index space is cut into chunks, axis by axis.

A grid is separable: each axis is cut on its own, and a chunk is the product of one interval per axis. All questions
are answered in time proportional to what is asked about, never to the number of chunks.

Source: Zarr v3.1 core, "Chunk grids".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol, Self

from tessarr.types import JSON, AnyArray, JSONObject, Shape


class Axis(Protocol):
    """One axis of an array of `length` elements, cut into `nchunks` intervals that start at 0 and touch."""

    length: int
    """Elements of the array along this axis."""
    nchunks: int
    """Chunks that hold at least one element of the array; 0 when `length` is 0."""

    def start(self, index: int) -> int:
        """First element of chunk `index`."""

    def size(self, index: int) -> int:
        """Elements that chunk `index` stores, the part beyond the array's edge included."""

    def find(self, position: int) -> int:
        """The chunk that holds element `position` (``0 <= position < length``)."""

    def find_many(self, positions: AnyArray) -> AnyArray:
        """`find` for an int64 array; int64 result of the same shape."""

    @property
    def uniform(self) -> int | None:
        """The size of every chunk when they are all equal, else ``None``."""


class ChunkGrid(ABC):
    """A chunk grid of one array. Immutable, equal by value."""

    name: ClassVar[str]
    diagnostics: tuple[str, ...] = ()
    """What was unusual about the document that this grid was parsed from, and was read all the same."""

    @classmethod
    @abstractmethod
    def from_json(cls, configuration: Mapping[str, JSON], shape: Shape) -> Self:
        """From a v3 ``chunk_grid`` configuration. Raises `MetadataValidationError` listing every problem."""

    @abstractmethod
    def to_json(self) -> JSONObject:
        """The v3 ``chunk_grid`` object."""

    @abstractmethod
    def axes(self, shape: Shape) -> tuple[Axis, ...]:
        """One `Axis` per dimension of an array of `shape`. Raises `ValueError` when the grid cannot cover `shape`."""

    @property
    @abstractmethod
    def chunk_shape(self) -> Shape | None:
        """The one shape that all chunks have, or ``None`` when they differ."""
