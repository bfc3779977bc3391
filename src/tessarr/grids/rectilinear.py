"""The ``rectilinear`` chunk grid: along each axis, chunks may differ in length.

Source: zarr-extensions, ``chunk-grids/rectilinear``; successor of ZEP 3.

An axis is an integer (repeated as often as the array needs) or a list of lengths; inside a list, ``[length, count]``
is a run. Writing keeps the JSON spelling that was read.

>>> spelling = [4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]]
>>> grid = RectilinearGrid.from_json({"kind": "inline", "chunk_shapes": spelling}, (6, 6, 6, 6, 6))
>>> [[axis.size(i) for i in range(axis.nchunks)] for axis in grid.axes((6, 6, 6, 6, 6))]
[[4, 4], [1, 2, 3], [4, 4], [1, 1, 1, 3], [4, 4]]
>>> grid.to_json()["configuration"]["chunk_shapes"] == spelling
True

Lengths are positive and add up to at least the array's; surplus chunks hold no element and are never stored. A chunk
that extends beyond the array's edge is stored at its declared length, as in the regular grid. v1 and v2 have no such
grid. A bare ``[4, 2]`` is two chunks of 4 and 2, ``[[4, 2]]`` is two chunks of 4. zarr-python reads and writes this
grid from 3.2 on when its option ``array.rectilinear_chunks`` is set; zarrs does too, and once called it ``rectangular``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np

from tessarr.errors import MetadataValidationError, Problem
from tessarr.grids.base import Axis, ChunkGrid
from tessarr.grids.regular import RegularAxis
from tessarr.types import JSON, AnyArray, JSONObject, Shape

Run: TypeAlias = tuple[int, int]
"""A chunk length and its number of repetitions."""

ChunkLengths: TypeAlias = int | Sequence[int | Sequence[int]]
"""One axis as it is spelled: a length, or a list of lengths and ``[length, count]`` runs."""


class VariedAxis:
    """Cut an axis of `length` elements into chunks given as runs of equal ones.

    Memory and time are proportional to the number of runs (logarithmic for a single lookup), never to that of chunks.

    Raises `ValueError` when the runs hold fewer than `length` elements.
    """

    __slots__ = ("_ends", "_runs", "_starts", "length", "nchunks")

    def __init__(self, length: int, runs: Sequence[Run]) -> None:
        self.length = length
        self._runs: list[Run] = []
        self._starts: list[int] = []
        """First element of each run."""
        self._ends: list[int] = []
        """Chunks up to and including each run."""
        at = chunks = 0
        for size, count in runs:
            if at >= length:
                break
            count = min(count, -(-(length - at) // size))
            self._runs.append((size, count))
            self._starts.append(at)
            chunks += count
            self._ends.append(chunks)
            at += size * count
        if at < length:
            raise ValueError(f"chunks of {at} elements in all cannot cover an axis of length {length}")
        self.nchunks = chunks

    def __repr__(self) -> str:
        return f"VariedAxis(length={self.length}, runs={self._runs})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VariedAxis):
            return NotImplemented
        return (self.length, self._runs) == (other.length, other._runs)

    def __hash__(self) -> int:
        return hash((self.length, *self._runs))

    def start(self, index: int) -> int:
        """Return the first element of chunk `index`, which is below `nchunks`."""
        run = bisect_right(self._ends, index)
        size, count = self._runs[run]
        return self._starts[run] + (index - (self._ends[run] - count)) * size

    def size(self, index: int) -> int:
        """Return how many elements chunk `index`, which is below `nchunks`, stores, also beyond the array's edge."""
        return self._runs[bisect_right(self._ends, index)][0]

    def find(self, position: int) -> int:
        """Return the chunk that holds element `position` (``0 <= position < length``)."""
        run = bisect_right(self._starts, position) - 1
        size, count = self._runs[run]
        return self._ends[run] - count + (position - self._starts[run]) // size

    def find_many(self, positions: AnyArray) -> AnyArray:
        """Apply `find` to an int64 array; int64 result of the same shape."""
        if not self.nchunks:
            return np.zeros_like(positions)
        starts = np.array(self._starts, np.int64)
        run = np.searchsorted(starts, positions, side="right") - 1
        # Only a chunk that extends beyond the edge can have a length beyond int64; any length past the edge divides alike.
        sizes = np.array([min(size, self.length) for size, _ in self._runs], np.int64)
        firsts = np.array([end - count for end, (_, count) in zip(self._ends, self._runs, strict=True)], np.int64)
        return np.asarray(firsts[run] + (positions - starts[run]) // sizes[run])

    @property
    def uniform(self) -> int | None:
        """The size of every chunk when they are all equal, else ``None``."""
        return self._runs[0][0] if len(self._runs) == 1 else None


class RectilinearGrid(ChunkGrid):
    """Cut an array into chunks of `chunk_shapes`, one entry per axis.

    Raises `MetadataValidationError` (a `ValueError`) listing every problem.
    """

    name: ClassVar[str] = "rectilinear"
    __slots__ = ("_runs", "_spelling")

    def __init__(self, chunk_shapes: Sequence[ChunkLengths]) -> None:
        problems: list[Problem] = []
        self._spelling = tuple(_plain(axis) for axis in chunk_shapes)
        self._runs = tuple(_runs(axis, ("chunk_shapes", i), problems) for i, axis in enumerate(self._spelling))
        if problems:
            raise MetadataValidationError("invalid rectilinear chunk grid", problems)

    def __repr__(self) -> str:
        return f"RectilinearGrid({list(self._spelling)})"

    def __eq__(self, other: object) -> bool:
        return self._runs == other._runs if isinstance(other, RectilinearGrid) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._runs)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON], shape: Shape) -> Self:
        """Parse a v3 ``chunk_grid`` configuration.

        Raises `MetadataValidationError` listing every problem, located relative to the configuration.
        Source: zarr-extensions, ``chunk-grids/rectilinear``.
        """
        problems = [
            Problem((name,), "unknown", f"{name!r} is not a member of the rectilinear grid's configuration")
            for name in configuration
            if name not in ("kind", "chunk_shapes")
        ]
        if "kind" not in configuration:
            problems.append(Problem(("kind",), "missing", "a rectilinear grid needs its kind"))
        elif configuration["kind"] != "inline":
            problems.append(Problem(("kind",), "unsupported", f"expected 'inline', got {configuration['kind']!r}"))
        axes = configuration.get("chunk_shapes")
        if "chunk_shapes" not in configuration:
            problems.append(Problem(("chunk_shapes",), "missing", "a rectilinear grid needs its chunk_shapes"))
        elif not isinstance(axes, list | tuple):
            problems.append(
                Problem(("chunk_shapes",), "type", f"expected a list with one entry per axis, got {axes!r}")
            )
        else:
            _check_axes(axes, shape, problems)
        if problems:
            raise MetadataValidationError("invalid rectilinear chunk grid", problems)
        return cls(cast("Sequence[ChunkLengths]", axes))

    def to_json(self) -> JSONObject:
        """Return the v3 ``chunk_grid`` object, each axis in its original spelling."""
        return {
            "name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": [_plain(axis) for axis in self._spelling]},
        }

    def axes(self, shape: Shape) -> tuple[Axis, ...]:
        """Return one axis per dimension of an array of `shape`.

        Raises `ValueError` when the ranks differ, or when the chunks of an axis do not reach its end.
        """
        if len(shape) != len(self._runs):
            raise ValueError(f"a grid of {len(self._runs)} axes cannot cover an array of shape {tuple(shape)}")
        axes: list[Axis] = []
        for i, (length, runs) in enumerate(zip(shape, self._runs, strict=True)):
            total = _total(runs)
            if total is not None and total < length:
                raise ValueError(
                    f"the chunks along axis {i} hold {total} elements in all and cannot cover its length {length}"
                )
            only = runs[0][0] if len(runs) == 1 else None
            axes.append(VariedAxis(length, runs) if only is None else RegularAxis(length, only))
        return tuple(axes)

    def covering(self, shape: Shape) -> RectilinearGrid:
        """Return the grid for an array grown to `shape`: an axis whose chunks would not reach its end gets one more
        chunk.

        >>> RectilinearGrid([[2, 3], 4]).covering((9, 9))
        RectilinearGrid([[2, 3, 4], 4])
        """
        grown: list[Any] = []
        for length, runs, axis in zip(shape, self._runs, self._spelling, strict=True):
            total = _total(runs)
            grown.append(axis if total is None or total >= length else [*axis, length - total])
        return self if grown == list(self._spelling) else RectilinearGrid(grown)

    def is_divisible(self, inner: Shape) -> bool:
        """Return whether every chunk is cut into whole inner chunks of the shape `inner`.

        >>> RectilinearGrid([[20, 30], 4]).is_divisible((10, 2)), RectilinearGrid([[20, 35], 4]).is_divisible((10, 2))
        (True, False)
        """
        return all(size % length == 0 for runs, length in zip(self._runs, inner, strict=True) for size, _ in runs)

    @property
    def chunk_shape(self) -> Shape | None:
        return tuple(runs[0][0] for runs in self._runs) if all(len(runs) == 1 for runs in self._runs) else None


_ENDLESS = 0
"""The count of a run that repeats as often as the array needs."""


def _total(runs: Sequence[Run]) -> int | None:
    """Count the elements that `runs` hold; ``None`` for an unbounded number."""
    return None if runs and runs[0][1] == _ENDLESS else sum(size * count for size, count in runs)


def _plain(value: object) -> Any:
    """Copy tuples, arrays and NumPy integers to lists of plain integers."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _check_axes(axes: Sequence[JSON], shape: Shape, problems: list[Problem]) -> None:
    """Add the problems to `problems` that keep the axes of a document from covering `shape`."""
    if len(axes) != len(shape):
        message = f"expected {len(shape)} entries, one per axis, got {len(axes)}"
        problems.append(Problem(("chunk_shapes",), "value", message))
    for i, axis in enumerate(axes):
        before = len(problems)
        total = _total(_runs(axis, ("chunk_shapes", i), problems))
        if len(problems) == before and i < len(shape) and total is not None and total < shape[i]:
            message = f"the chunks hold {total} elements in all, fewer than the axis' {shape[i]}"
            problems.append(Problem(("chunk_shapes", i), "value", message))


def _runs(axis: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> tuple[Run, ...]:
    """Parse one axis to runs, neighbours of equal length merged; add its problems to `problems`."""
    if not isinstance(axis, list | tuple):
        return ((axis, _ENDLESS),) if _positive(axis, loc, problems) else ()
    runs: list[Run] = []
    for i, entry in enumerate(axis):
        here = (*loc, i)
        if not isinstance(entry, list | tuple):
            run = (entry, 1)
            good = _positive(entry, here, problems)
        elif len(entry) == 2:
            run = (entry[0], entry[1])
            good = _positive(entry[0], (*here, 0), problems) & _positive(entry[1], (*here, 1), problems)
        else:
            problems.append(Problem(here, "value", f"expected a length or [length, count], got {entry!r}"))
            good = False
        if good and runs and runs[-1][0] == run[0]:
            runs[-1] = (run[0], runs[-1][1] + run[1])
        elif good:
            runs.append(run)
    return tuple(runs)


def _positive(value: object, loc: tuple[str | int, ...], problems: list[Problem]) -> bool:
    """Return whether `value` is a positive integer; add a problem otherwise."""
    if type(value) is int and value >= 1:
        return True
    kind = "value" if type(value) is int else "type"
    problems.append(Problem(loc, kind, f"expected a positive integer, got {value!r}"))
    return False
