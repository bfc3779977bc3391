"""The ``regular`` chunk grid: every chunk has the same shape, and the grid starts at the array's origin.

Source: Zarr v3.1 core, "Regular grids"; Zarr v2, "chunks"; Zarr v1, "chunks".

In v3 it is written as an object; v1 and v2 hold the same list under ``chunks``:

>>> grid = RegularGrid.from_json({"chunk_shape": [5, 20, 400]}, (10, 200, 3000))
>>> grid.to_json()
{'name': 'regular', 'configuration': {'chunk_shape': [5, 20, 400]}}
>>> tuple(axis.nchunks for axis in grid.axes((10, 200, 3000)))
(2, 10, 8)

Chunks at the far edges are stored whole; elements beyond the array's edge are undefined. A chunk may be longer than
the array. A chunk length of 0 was written by older libraries for axes of length 0: it is read as 1 with a warning, and
refused with ``strict=True`` or the setting ``strict`` (v3 requires every length to be positive). It is never written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np

from tessarr.errors import MetadataValidationError, Problem
from tessarr.grids.base import ChunkGrid
from tessarr.settings import config, is_strict
from tessarr.types import JSON, AnyArray, JSONObject, Shape


class RegularAxis:
    """Cut an axis into chunks of one size. Every lookup is arithmetic."""

    __slots__ = ("_size", "length", "nchunks")

    def __init__(self, length: int, size: int) -> None:
        self.length = length
        self.nchunks = -(-length // size)
        self._size = size

    def __repr__(self) -> str:
        return f"RegularAxis(length={self.length}, size={self._size})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RegularAxis):
            return NotImplemented
        return (self.length, self._size) == (other.length, other._size)

    def __hash__(self) -> int:
        return hash((self.length, self._size))

    def start(self, index: int) -> int:
        """Return the first element of chunk `index`."""
        return index * self._size

    def size(self, index: int) -> int:
        """Return how many elements chunk `index` stores, the part beyond the array's edge included."""
        return self._size

    def find(self, position: int) -> int:
        """Return the chunk that holds element `position` (``0 <= position < length``)."""
        return position // self._size

    def find_many(self, positions: AnyArray) -> AnyArray:
        """Apply `find` to an int64 array; int64 result of the same shape."""
        if self._size >= self.length:
            return np.zeros_like(positions)
        return positions // self._size

    @property
    def uniform(self) -> int | None:
        """The size of every chunk."""
        return self._size


class RegularGrid(ChunkGrid):
    """Cut an array into chunks of `chunk_shape`: positive lengths, one per dimension.

    Raises `ValueError` when a length is not a positive integer.
    """

    name: ClassVar[str] = "regular"
    __slots__ = ("_chunk_shape", "diagnostics")

    def __init__(self, chunk_shape: Sequence[int]) -> None:
        lengths = []
        given: tuple[object, ...] = tuple(chunk_shape)
        for length in given:
            if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 1:
                raise ValueError(f"chunk lengths are positive integers; got {length!r} in {given!r}")
            lengths.append(int(length))
        self._chunk_shape = tuple(lengths)
        self.diagnostics = ()

    def __repr__(self) -> str:
        return f"RegularGrid({self._chunk_shape})"

    def __eq__(self, other: object) -> bool:
        return self._chunk_shape == other._chunk_shape if isinstance(other, RegularGrid) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._chunk_shape)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON], shape: Shape, *, strict: bool = False) -> Self:
        """Parse a v3 ``chunk_grid`` configuration, or ``{"chunk_shape": chunks}`` of a v1 or v2 document.

        `strict` refuses the chunk length 0 that older libraries wrote for axes of length 0.

        Raises `MetadataValidationError` listing every problem, located relative to the configuration.
        Source: Zarr v3.1 core, "Regular grids".
        """
        problems = [
            Problem((name,), "unknown", f"{name!r} is not a member of the regular grid's configuration")
            for name in configuration
            if name != "chunk_shape"
        ]
        lengths: Shape = ()
        diagnostics: list[str] = []
        if "chunk_shape" in configuration:
            stated = configuration["chunk_shape"]
            lengths = read_chunk_shape(
                stated, shape, problems, ("chunk_shape",), strict=strict, diagnostics=diagnostics
            )
        else:
            problems.append(Problem(("chunk_shape",), "missing", "a regular grid needs its chunk_shape"))
        if problems:
            raise MetadataValidationError("invalid regular chunk grid", problems)
        grid = cls(lengths)
        grid.diagnostics = tuple(diagnostics)
        return grid

    def to_json(self) -> JSONObject:
        return {"name": "regular", "configuration": {"chunk_shape": list(self._chunk_shape)}}

    def axes(self, shape: Shape) -> tuple[RegularAxis, ...]:
        """Return one axis per dimension of an array of `shape`. Raises `ValueError` when the ranks differ."""
        if len(shape) != len(self._chunk_shape):
            raise ValueError(
                f"chunk shape {self._chunk_shape} cannot cover an array of shape {tuple(shape)}: ranks differ"
            )
        return tuple(map(RegularAxis, shape, self._chunk_shape))

    @property
    def chunk_shape(self) -> Shape:
        """The shape of every chunk."""
        return self._chunk_shape


def read_chunk_shape(
    value: JSON,
    shape: Shape,
    problems: list[Problem],
    loc: tuple[str | int, ...],
    *,
    strict: bool = False,
    diagnostics: list[str],
) -> Shape:
    """Parse the chunk shape that a document holds at `loc`; add its problems to `problems`.

    The result is valid only if no problem was added.

    Booleans, floats (``2.0`` too) and strings are not lengths. A 0 on an axis of length 0 is read as 1 unless
    `strict`, which is added to `diagnostics`.
    """
    if not isinstance(value, list | tuple):
        problems.append(Problem(loc, "type", f"expected a list of positive integers, got {value!r}"))
        return ()
    if len(value) != len(shape):
        problems.append(Problem(loc, "value", f"expected {len(shape)} lengths, one per dimension, got {len(value)}"))
    lengths = []
    for i, length in enumerate(value):
        if type(length) is not int:
            problems.append(Problem((*loc, i), "type", f"expected a positive integer, got {length!r}"))
        elif length == 0 and not (strict or is_strict()) and i < len(shape) and shape[i] == 0:
            if not config.get("zarr_python.documents"):  # zarr-python does so silently
                diagnostics.append(f"chunk length 0 on axis {i} of length 0 is read as 1")
            length = 1
        elif length < 1:
            problems.append(Problem((*loc, i), "value", f"expected a positive integer, got {length}"))
        lengths.append(length)
    return tuple(lengths)
