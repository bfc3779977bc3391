"""Cut a selection along the chunk grid: the chunks it touches, the elements of each, and their place in the result.

1. `Outer`: each axis is cut independently into *pieces*, one per chunk interval touched; a part is the product of one
   piece per axis. Slices are cut by arithmetic; index arrays are grouped by a stable sort.
2. `Points`: the points are grouped by chunk with one stable sort.

Each chunk appears in exactly one part, so a chunk is fetched once and two parts never write to the same chunk. A part
keeps the order of the selection, so of repeated indices the last one written wins, as in NumPy. Time and memory are
proportional to the selection and the parts, never to the grid; parts of an `Outer` are generated lazily.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product, repeat
from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from tessarr.grids.base import Axis
from tessarr.indexing.selection import IndexArray, Outer, Points, Selection
from tessarr.types import Coords

Pick: TypeAlias = slice | IndexArray
"""A selection along one axis: a slice, or a 1-d int64 index array."""


class Part(NamedTuple):
    """The elements of one chunk that a selection contains."""

    coords: Coords
    """Coords of the chunk."""
    local: Selection
    """The selected elements, counted from the chunk's first element; `Outer` or `Points` like the whole selection."""
    out_sel: Any
    """NumPy index of the elements in the full-rank result; it gives a view if every entry is a slice."""
    covers: bool
    """Whether every element that the chunk shares with the array is selected, once and in order. Never set for
    `Points`.
    """


class Parts(Protocol):
    """The parts of a plan: sized, and iterable any number of times."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Part]: ...


class Pieces(NamedTuple):
    """Cut one axis of an `Outer`: four lists with one entry per chunk interval touched."""

    chunks: Sequence[int]
    """Chunk index along the axis."""
    local: Sequence[Pick]
    """Selected elements of the chunk, counted from its start."""
    out: Sequence[Pick]
    """Their positions along the axis of the result."""
    covers: Sequence[bool]
    """Whether all elements of the chunk within the array are selected in order."""


def plan(selection: Selection, axes: Sequence[Axis]) -> Parts:
    """Cut `selection` along the grid that `axes` describe; `axes` has one entry per dimension of the array.

    Parts come in ascending C order of their coords.
    """
    if isinstance(selection, Points):
        return _cut_points(selection.coords, axes)
    part = _one_chunk(selection.dims, axes)
    if part is not None:
        return (part,)
    return OuterParts([_cut(dim, axis) for dim, axis in zip(selection.dims, axes, strict=True)])


def _one_chunk(dims: tuple[Pick, ...], axes: Sequence[Axis]) -> Part | None:
    """Return the only part of a box inside one chunk, the commonest request; ``None`` for other requests."""
    coords, local, out, covers = [], [], [], True
    for dim, axis in zip(dims, axes, strict=True):
        if not isinstance(dim, slice):
            return None
        start, stop, step = dim.start, dim.stop, dim.step
        if start == stop:
            return None
        index = axis.find(start)
        first = axis.start(index)
        size = axis.size(index)
        if stop > first + size:
            return None
        coords.append(index)
        local.append(slice(start - first, stop - first, step))
        out.append(slice(0, (stop - start + step - 1) // step, 1))
        covers = covers and start == first and step == 1 and (stop == axis.length or stop == first + size)
    return Part(tuple(coords), Outer(tuple(local)), tuple(out), covers)


class OuterParts:
    """Generate the parts of an `Outer`."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces: Sequence[Pieces]) -> None:
        self._pieces = pieces

    def __len__(self) -> int:
        return prod([len(pieces.chunks) for pieces in self._pieces])

    def __iter__(self) -> Iterator[Part]:
        # Four products in lockstep: only the `Outer` objects are made by Python code.
        pieces = self._pieces
        coords = product(*[p.chunks for p in pieces])
        local = map(Outer, product(*[p.local for p in pieces]))
        out = product(*[p.out for p in pieces])
        arrays = sum(any(not isinstance(o, slice) for o in p.out) for p in pieces)
        if all(all(p.covers) for p in pieces):
            covers: Iterator[bool] = repeat(True)
        else:
            covers = (False not in each for each in product(*[p.covers for p in pieces]))
        return map(Part, coords, local, map(_outer_index, out) if arrays > 1 else out, covers)


def _outer_index(picks: tuple[Pick, ...]) -> object:
    """Make the NumPy index of the outer product of `picks`."""
    return Outer(picks).index


def _cut(dim: Pick, axis: Axis) -> Pieces:
    """Cut the selection along one axis."""
    if not isinstance(dim, slice):
        return _cut_indices(dim, axis)
    size = axis.uniform
    if size is None or dim.step != 1 or dim.stop - dim.start <= size:
        return _cut_slice(dim, axis)
    return _cut_run(dim.start, dim.stop, size, axis.length)


def _cut_run(start: int, stop: int, size: int, length: int) -> Pieces:
    """Cut ``[start, stop)``, which is longer than one chunk, along chunks of one size."""
    first, last = start // size, (stop - 1) // size
    whole = slice(0, size, 1)
    local = [whole] * (last - first + 1)
    local[0] = slice(start - first * size, size, 1)
    local[-1] = slice(0, stop - last * size, 1)
    head = size * (first + 1) - start
    out = [slice(0, head, 1)]
    out += [slice(at, at + size, 1) for at in range(head, stop - start - size, size)]
    out.append(slice(head + (last - first - 1) * size, stop - start, 1))
    covers = [True] * len(local)
    covers[0] = start == first * size
    covers[-1] = stop == length or stop == (last + 1) * size
    return Pieces(range(first, last + 1), local, out, covers)


def _cut_slice(dim: slice, axis: Axis) -> Pieces:
    """Cut any slice along any axis, jumping from chunk to chunk; chunks that the step skips are left out."""
    index: list[int] = []
    local: list[Pick] = []
    out: list[Pick] = []
    covers: list[bool] = []
    at, done, stop, step, length = dim.start, 0, dim.stop, dim.step, axis.length
    while at < stop:
        chunk = axis.find(at)
        first = axis.start(chunk)
        end = first + axis.size(chunk)
        count = (min(end, stop) - at + step - 1) // step
        last = at + (count - 1) * step + 1
        index.append(chunk)
        local.append(slice(at - first, last - first, step if count > 1 else 1))
        out.append(slice(done, done + count, 1))
        covers.append(at == first and last == min(end, length) and (step == 1 or count == 1))
        done += count
        at += count * step
    return Pieces(index, local, out, covers)


def _cut_indices(dim: IndexArray, axis: Axis) -> Pieces:
    """Group an index array by chunk. Ascending runs become slices, which NumPy copies faster."""
    index: list[int] = []
    local: list[Pick] = []
    out: list[Pick] = []
    covers: list[bool] = []
    if not len(dim):
        return Pieces(index, local, out, covers)
    chunks = axis.find_many(dim)
    order, edges = _groups(chunks)
    if order is not None:
        chunks, dim = chunks[order], dim[order]
    steps = np.diff(dim)
    for start, stop in pairwise(edges):
        chunk = int(chunks[start])
        first = axis.start(chunk)
        low, count = int(dim[start]) - first, stop - start
        run = count == 1 or bool((steps[start : stop - 1] == 1).all())
        index.append(chunk)
        local.append(slice(low, low + count, 1) if run else dim[start:stop] - first)
        out.append(slice(start, stop, 1) if order is None else order[start:stop])
        covers.append(run and low == 0 and count == min(axis.size(chunk), axis.length - first))
    return Pieces(index, local, out, covers)


def _groups(keys: IndexArray) -> tuple[IndexArray | None, list[int]]:
    """Group equal `keys` (at least one).

    Returns the stable order that sorts them (``None`` when they are sorted) and the positions where groups begin in
    that order, followed by their number.
    """
    order = None
    steps = np.diff(keys)
    if (steps < 0).any():
        order = np.argsort(keys, kind="stable")
        steps = np.diff(keys[order])
    return order, [0, *(np.flatnonzero(steps) + 1).tolist(), len(keys)]


def _cut_points(coords: tuple[IndexArray, ...], axes: Sequence[Axis]) -> Sequence[Part]:
    """Group points by chunk."""
    if not len(coords[0]):
        return ()
    chunks = [axis.find_many(c) for axis, c in zip(axes, coords, strict=True)]
    order, edges = _groups(_grid_keys(chunks))
    if order is not None:
        chunks = [c[order] for c in chunks]
        coords = tuple(c[order] for c in coords)
    heads = edges[:-1]
    grid = list(zip(*(c[heads].tolist() for c in chunks), strict=True))
    local = []
    for axis, positions, indices in zip(axes, coords, chunks, strict=True):
        size = axis.uniform
        if size is not None:
            local.append(positions - indices * size)
        else:
            starts = np.array([axis.start(i) for i in indices[heads].tolist()], np.int64)
            local.append(positions - np.repeat(starts, np.diff(edges)))
    parts = []
    for index, start, stop in zip(grid, heads, edges[1:], strict=True):
        taken = Points(tuple(positions[start:stop] for positions in local))
        parts.append(Part(index, taken, (slice(start, stop, 1) if order is None else order[start:stop],), False))
    return parts


def _grid_keys(chunks: list[IndexArray]) -> IndexArray:
    """Compute an int64 per point that is equal for points of one chunk and sorts like the chunks' coords.

    Counted from the lowest chunk touched along each axis, so that grids of more than 2⁶³ chunks do not overflow; where
    even the extent of the selection would, values are replaced by their rank.
    """
    keys, extent = chunks[0], int(chunks[0].max()) + 1
    for indices in chunks[1:]:
        low = int(indices.min())
        offsets, span = indices - low, int(indices.max()) - low + 1
        if extent * span >= 2**63:
            ranks, keys = np.unique(keys, return_inverse=True)
            values, offsets = np.unique(offsets, return_inverse=True)
            extent, span = len(ranks), len(values)
        keys = keys * span + offsets
        extent *= span
    return keys
