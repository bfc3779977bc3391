"""Reconstruct the selection from the chunks that zarr-python passes to a codec pipeline.

zarr-python divides a selection into chunks before it calls the pipeline, and passes for each the selection within the chunk
and the position in the result. One call of an engine can serve the reconstructed selection. The result is ``None`` for every
batch that is not certain to be the parts of one selection.

Source: ``zarr.core.indexing`` and `CodecPipeline.read` of zarr-python 3.1.6 and 3.4.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.indexing.selection import Outer, Points, Selection
from tessarr.types import Coords, Shape

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.indexing import SelectorTuple

    Item: TypeAlias = tuple[object, ArraySpec, SelectorTuple, SelectorTuple, bool]
    """What zarr-python passes per chunk: its place, its spec, the selection in it, the place in the result, and whether it is
    covered."""

_Pick: TypeAlias = slice | npt.NDArray[np.int64]
"""What is selected along one axis."""


class Batch(NamedTuple):
    """A selection, and the positions of its elements in the result."""

    selection: Selection
    shape: Shape
    """The shape of an array that contains the selection, and ends at the end of the chunks that are marked as complete."""
    out: slice | npt.NDArray[np.int64] | tuple[_Pick, ...]
    """Index of the result, at full rank without the axes `dropped`."""
    dropped: tuple[int, ...]
    """Axes that the result does not have."""


class _Axis(NamedTuple):
    start: int
    """Start of the chunk along this axis."""
    local: _Pick
    """Selection within the chunk: a slice or an index array."""
    out: _Pick | None
    """Position in the result: a slice, an index array, or ``None`` where the axis is dropped."""


def reconstruct(
    batch: Sequence[Item], coords: list[Coords], drop_axes: tuple[int, ...], *, keeps_padding: bool
) -> Batch | None:
    """Reconstruct the selection of `batch`, whose chunks are at `coords` of a regular grid.

    `keeps_padding`: values that chunks hold beyond the array's edge are kept, as in zarr-python's shards, so that a selection
    up to the edge does not cover the chunk.
    """
    chunk = tuple(batch[0][1].shape)
    if any(item[1].shape != chunk for item in batch):
        return None
    if not isinstance(batch[0][3], tuple):
        return _points(batch, coords, chunk)
    found = _outer(batch, coords, chunk, drop_axes)
    if found is None or not keeps_padding:
        return found
    return found._replace(shape=tuple(-(-n // length) * length for n, length in zip(found.shape, chunk, strict=True)))


# -- points --------------------------------------------------------------------------------------------------------------


def _points(batch: Sequence[Item], coords: list[Coords], chunk: Shape) -> Batch | None:
    local = [item[2] for item in batch if isinstance(item[2], tuple)]
    if not chunk or len(local) < len(batch) or any(isinstance(item[3], tuple) for item in batch):
        return None
    axes = tuple(
        np.concatenate([_flat(inside[d]) + where[d] * chunk[d] for inside, where in zip(local, coords, strict=True)])
        for d in range(len(chunk))
    )
    out = np.concatenate([np.arange(p.start, p.stop) if isinstance(p, slice) else _flat(p) for _, _, _, p, _ in batch])
    if len(out) != len(axes[0]):
        return None
    shape = tuple((int(axis.max()) // n + 1) * n if axis.size else n for axis, n in zip(axes, chunk, strict=True))
    return Batch(Points(axes), shape, out, ())


def _flat(array: object) -> npt.NDArray[np.int64]:
    return np.asarray(array).reshape(-1).astype(np.int64, copy=False)


# -- outer products ------------------------------------------------------------------------------------------------------


def _outer(batch: Sequence[Item], coords: list[Coords], chunk: Shape, drop_axes: tuple[int, ...]) -> Batch | None:
    ndim = len(chunk)
    axes: list[dict[int, _Axis]] = [{} for _ in chunk]
    ends: dict[int, int] = {}
    for (_, _, local, out, is_complete), where in zip(batch, coords, strict=True):
        parts = _split_axes(local, out, ndim, drop_axes)
        if parts is None:
            return None
        for d, (inside, place) in enumerate(parts):
            start = where[d] * chunk[d]
            known = axes[d].setdefault(where[d], _Axis(start, inside, place))
            if known.local is not inside and not _equal(known.local, inside):
                return None
            if is_complete and isinstance(inside, slice) and inside.stop < chunk[d]:
                ends[d] = start + inside.stop
    if len(batch) != math.prod(map(len, axes)):
        return None
    dims, outs = [], []
    for found in axes:
        axis = _concatenate([found[i] for i in sorted(found)])
        if axis is None:
            return None
        dims.append(axis[0])
        outs.append(axis[1])
    dropped = tuple(d for d in range(ndim) if outs[d] is None)
    shape = tuple(ends.get(d, (max(axes[d]) + 1) * chunk[d]) for d in range(ndim))
    kept = [place for place in outs if place is not None]
    if any(isinstance(place, np.ndarray) for place in kept):
        arrays = [np.arange(p.start, p.stop) if isinstance(p, slice) else p for p in kept]
        return Batch(Outer(tuple(dims)), shape, np.ix_(*arrays), dropped)
    return Batch(Outer(tuple(dims)), shape, tuple(kept), dropped)


def _split_axes(
    local: object, out: object, ndim: int, drop_axes: tuple[int, ...]
) -> list[tuple[_Pick, _Pick | None]] | None:
    """Return, per axis, the selection within the chunk and the position in the result."""
    if not isinstance(local, tuple) or not isinstance(out, tuple) or len(local) != ndim:
        return None
    places = iter(out)
    parts: list[tuple[_Pick, _Pick | None]] = []
    for d, item in enumerate(local):
        if isinstance(item, slice):
            parts.append((item, next(places, None)))
        elif isinstance(item, int | np.integer):
            parts.append((slice(int(item), int(item) + 1, 1), None))
        else:
            place = None if d in drop_axes else next(places, None)
            parts.append((_flat(item), place if place is None or isinstance(place, slice) else _flat(place)))
    if next(places, None) is not None:
        return None
    return parts


def _equal(a: _Pick, b: _Pick) -> bool:
    if isinstance(a, slice) or isinstance(b, slice):
        return bool(a.__class__ is b.__class__ and a == b)
    return np.array_equal(a, b)


def _concatenate(parts: list[_Axis]) -> tuple[_Pick, _Pick | None] | None:
    """Concatenate the parts of one axis: the selection from the array, and the position in the result."""
    first = parts[0]
    if isinstance(first.local, slice) and (first.out is None or isinstance(first.out, slice)):
        return _concatenate_slices(parts, first.start, first.local, first.out)
    dims, outs = [], []
    for start, local, out in parts:
        if isinstance(local, slice):
            return None
        dims.append(local + start)
        if out is not None:
            outs.append(np.arange(out.start, out.stop) if isinstance(out, slice) else out)
    positions = np.concatenate(dims)
    if not outs:
        return (positions, None) if len(positions) == 1 else None
    places = np.concatenate(outs)
    if len(places) != len(positions):
        return None
    return positions, slice(0, len(places)) if np.array_equal(places, np.arange(len(places))) else places


def _concatenate_slices(
    parts: list[_Axis], origin: int, first: slice, first_out: slice | None
) -> tuple[_Pick, _Pick | None] | None:
    """Concatenate the slices of neighbouring chunks to one slice; the first chunk begins at `origin`."""
    step = first.step or 1
    begin = origin + (first.start or 0)
    expected, filled = begin, None
    for start, local, out in parts:
        if not isinstance(local, slice) or (local.step or 1) != step or start + (local.start or 0) != expected:
            return None
        count = (local.stop - (local.start or 0) + step - 1) // step
        if count <= 0:
            return None
        if out is not None:
            if not isinstance(out, slice) or out.stop - out.start != count or (filled not in (None, out.start)):
                return None
            filled = out.stop
        elif len(parts) > 1 or count > 1:
            return None
        expected += count * step
    last = expected - step
    place = None if first_out is None else slice(first_out.start, filled)
    return slice(begin, last + 1, step if last > begin else 1), place
