"""Reconstruct the selection from the chunks that zarr-python passes to a codec pipeline.

zarr-python divides a selection into chunks before it calls the pipeline, and passes for each the selection within the chunk
and the position in the result. One call of an engine can serve the reconstructed selection. The result is ``None`` for every
batch that is not certain to be the parts of one selection.

Source: ``zarr.core.indexing`` and `CodecPipeline.read` of zarr-python 3.1.6 and 3.4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.indexing.selection import Outer, Points, Selection
from tessarr.keys.base import ChunkKeyEncoding, KeyTemplate, Slot
from tessarr.types import Coords, Shape
from tessarr.zarr_python.stores.unwrap import NotServedError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.indexing import SelectorTuple

    Item: TypeAlias = tuple[object, ArraySpec, SelectorTuple, SelectorTuple, bool]
    """What zarr-python passes per chunk: its place, its spec, the selection in it, the place in the result, and whether it is
    covered."""

_Pick: TypeAlias = slice | npt.NDArray[np.int64]
"""What is selected along one axis."""


class Keys(NamedTuple):
    """The keys of an array's chunks in zarr-python's store."""

    prefix: str
    encoding: ChunkKeyEncoding
    template: KeyTemplate | None
    """The key template, if its slots are in the order of the axes."""

    @classmethod
    def of(cls, prefix: str, encoding: ChunkKeyEncoding, ndim: int) -> Keys:
        """Return the keys of an array of `ndim` axes."""
        template = encoding.template(ndim)
        axes = [part.axis for part in template or () if isinstance(part, Slot)]
        return cls(prefix, encoding, template if axes == [*range(ndim)] else None)

    def decode(self, path: str, ndim: int) -> Coords:
        """Return the coords of the chunk with the key `path`. Raises `NotServedError` for the key of anything else."""
        coords = self.encoding.decode(path[len(self.prefix) :], ndim) if path.startswith(self.prefix) else None
        if coords is None:
            raise NotServedError("keys that are not those of chunks")
        return coords

    def combinations(self, indices: Sequence[Sequence[int]]) -> list[str]:
        """Return the keys of all chunks with these `indices` along the axes, in C order.

        >>> from tessarr.keys.default import DefaultKeyEncoding
        >>> Keys.of("a/", DefaultKeyEncoding(), 2).combinations([[0, 1], [7]])
        ['a/c/0/7', 'a/c/1/7']
        """
        if self.template is None:
            return [self.prefix + self.encoding.encode(coords) for coords in product(*indices)]
        parts = ([part] if isinstance(part, str) else map(part.spell, indices[part.axis]) for part in self.template)
        return [*map("".join, product([self.prefix], *parts))]


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
    batch: Sequence[Item], paths: list[str], keys: Keys, drop_axes: tuple[int, ...], *, keeps_padding: bool
) -> Batch | None:
    """Reconstruct the selection of `batch`, whose chunks have the keys `paths` and are in a regular grid.

    `keeps_padding`: values that chunks hold beyond the array's edge are kept, as in zarr-python's shards, so that a selection
    up to the edge does not cover the chunk.
    """
    _, specs, local, out, complete = zip(*batch, strict=True)
    chunk = tuple(specs[0].shape)
    if {spec.shape for spec in specs} != {chunk}:
        return None
    if len(batch) == 1:  # as of most reads
        one = _box(local[0], out[0], keys.decode(paths[0], len(chunk)), chunk, ends=complete[0] and not keeps_padding)
        if one is not None:
            return one
    if not isinstance(out[0], tuple):
        return _points(local, out, [keys.decode(path, len(chunk)) for path in paths], chunk)
    indices = _indices(paths, keys, len(chunk))
    axes = None if indices is None else _axes(local, out, indices, chunk, drop_axes)
    if indices is None or axes is None:
        return None
    ends = _ends(axes, complete, chunk)
    shape = tuple(
        (max(found) + 1) * n if end is None or keeps_padding else end
        for found, n, end in zip(indices, chunk, ends, strict=True)
    )
    return _outer(axes, shape)


def _box(local: object, out: object, coords: Coords, chunk: Shape, *, ends: bool) -> Batch | None:
    """Reconstruct a selection of slices without steps in the one chunk at `coords`; ``None`` for any other.

    `ends`: the array ends where the selection does, if that is within the chunk.
    """
    if not isinstance(local, tuple) or not isinstance(out, tuple) or not len(local) == len(out) == len(chunk):
        return None
    dims, shape = [], []
    for inside, place, index, length in zip(local, out, coords, chunk, strict=True):
        if not isinstance(inside, slice) or not isinstance(place, slice) or inside.step not in (1, None):
            return None
        start, begin = inside.start or 0, index * length
        if not 0 < inside.stop - start == place.stop - place.start:
            return None
        dims.append(slice(begin + start, begin + inside.stop, 1))
        shape.append(begin + (inside.stop if ends and inside.stop < length else length))
    return Batch(Outer(tuple(dims)), tuple(shape), out, ())


# -- points --------------------------------------------------------------------------------------------------------------


def _points(local: Sequence[object], out: Sequence[object], coords: list[Coords], chunk: Shape) -> Batch | None:
    inside = [item for item in local if isinstance(item, tuple)]
    if not chunk or len(inside) < len(local) or any(isinstance(item, tuple) for item in out):
        return None
    axes = tuple(
        np.concatenate([_flat(item[d]) + where[d] * chunk[d] for item, where in zip(inside, coords, strict=True)])
        for d in range(len(chunk))
    )
    places = np.concatenate([np.arange(p.start, p.stop) if isinstance(p, slice) else _flat(p) for p in out])
    if len(places) != len(axes[0]):
        return None
    shape = tuple((int(axis.max()) // n + 1) * n if axis.size else n for axis, n in zip(axes, chunk, strict=True))
    return Batch(Points(axes), shape, places, ())


def _flat(array: object) -> npt.NDArray[np.int64]:
    return np.asarray(array).reshape(-1).astype(np.int64, copy=False)


# -- outer products ------------------------------------------------------------------------------------------------------
# A batch has all combinations of the parts of its axes, in C order. Whether it has is compared as a whole, because a step of
# Python per chunk takes longer than copying a small chunk.


def _indices(paths: list[str], keys: Keys, ndim: int) -> list[list[int]] | None:
    """Return the indices of the chunks along each axis; ``None`` where `paths` are not all combinations of them."""
    first = keys.decode(paths[0], ndim)
    found: list[list[int]] = []
    stride = 1
    for d in reversed(range(ndim)):
        along = [first[d]]
        for path in paths[stride::stride]:
            coords = keys.decode(path, ndim)
            if coords[:d] != first[:d]:
                break
            along.append(coords[d])
        stride *= len(along)
        found.insert(0, along)
    return found if len(paths) == 1 or paths == keys.combinations(found) else None


def _axes(
    local: Sequence[object], out: Sequence[object], indices: list[list[int]], chunk: Shape, drop_axes: tuple[int, ...]
) -> list[list[_Axis]] | None:
    """Return the parts of each axis; ``None`` where the batch is not made of all combinations of them."""
    ndim = len(chunk)
    first = _split_axes(local[0], out[0], ndim, drop_axes)
    axes: list[list[_Axis]] = []
    given: list[list[object]] = []
    stride = len(local)
    for d, along in enumerate(indices):
        stride //= len(along)
        axes.append([])
        given.append([])
        for i, index in enumerate(along):
            inside = local[i * stride]
            parts = _split_axes(inside, out[i * stride], ndim, drop_axes) if i else first
            if parts is None or not isinstance(inside, tuple):
                return None
            axes[d].append(_Axis(index * chunk[d], *parts[d]))
            given[d].append(inside[d])
    if len(local) == 1:
        return axes
    if any(isinstance(part.local, np.ndarray) for parts in axes for part in parts):
        split = (_split_axes(inside, place, ndim, drop_axes) for inside, place in zip(local, out, strict=True))
        same = all(
            parts is not None and all(_equal(axis.local, part) for axis, (part, _) in zip(expected, parts, strict=True))
            for expected, parts in zip(product(*axes), split, strict=True)
        )
    else:
        places = [[axis.out for axis in parts] for parts in axes if parts[0].out is not None]
        same = local == tuple(product(*given)) and out == tuple(product(*places))
    return axes if same else None


def _ends(axes: list[list[_Axis]], complete: Sequence[bool], chunk: Shape) -> list[int | None]:
    """Return where each axis ends, if that is within a chunk which is marked as complete."""
    ends: list[int | None] = [None] * len(chunk)
    if any(complete):
        for d, (start, local, _) in enumerate([parts[-1] for parts in axes]):
            if isinstance(local, slice) and local.stop < chunk[d]:
                covered = np.reshape(complete, [len(parts) for parts in axes])
                if covered.take(-1, axis=d).any():
                    ends[d] = start + local.stop
    return ends


def _outer(axes: list[list[_Axis]], shape: Shape) -> Batch | None:
    dims, outs = [], []
    for parts in axes:
        axis = _concatenate(parts)
        if axis is None:
            return None
        dims.append(axis[0])
        outs.append(axis[1])
    dropped = tuple(d for d, place in enumerate(outs) if place is None)
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
    if len(parts) == 1 and step == 1 and first_out is not None:  # most reads are of one chunk
        count = first.stop - (first.start or 0)
        return (slice(begin, begin + count, 1), first_out) if 0 < count == first_out.stop - first_out.start else None
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
