"""Convert selections of zarr-python to requests.

A `Request` is made of an index expression or of an indexer. Of index expressions only the forms that both packages interpret
alike are converted; all others are ``None`` and fall back to zarr-python, which raises its own errors. An indexer is a
selection that zarr-python has already parsed.

Source: ``zarr.core.indexing`` of zarr-python 3.1.6 and 3.4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tessarr.engine.bound import BoundArray
from tessarr.indexing import request as requests
from tessarr.indexing.base import FORWARD, Request
from tessarr.indexing.selection import Outer, Points, Selection

if TYPE_CHECKING:
    from zarr.core.indexing import (
        BasicIndexer,
        BlockIndexer,
        BoolArrayDimIndexer,
        CoordinateIndexer,
        IntArrayDimIndexer,
        IntDimIndexer,
        MaskIndexer,
        OrthogonalIndexer,
        SliceDimIndexer,
    )

_S = TypeVar("_S")
_INTEGERS = frozenset({int, *(np.dtype(code).type for code in "bhilqBHILQ")})
_BOUNDS = _INTEGERS | {type(None)}


def _items(selection: object) -> tuple[Any, ...]:
    """Return what is between the brackets as a tuple. A subclass of `tuple` may index otherwise, and so is one item."""
    return selection if type(selection) is tuple else (selection,)


# -- from brackets -------------------------------------------------------------------------------------------------------


def basic(bound: BoundArray, selection: object) -> Request | None:
    """Convert integers, forward slices and Ellipsis."""
    items = _items(selection)
    for item in items:
        kind = item.__class__
        if not (kind is slice and _is_forward(item)) and kind not in _INTEGERS and item is not Ellipsis:
            return None
    return _request_or_none(requests.basic, items, bound.shape)


def orthogonal(bound: BoundArray, selection: object) -> Request | None:
    """Convert one integer, forward slice, integer array or mask per axis, with at least one array."""
    items = _items(selection)
    arrays = 0
    for item in items:
        kind = item.__class__
        if kind is np.ndarray and item.ndim == 1 and item.dtype.kind in "iub":
            arrays += 1
        elif not (kind is slice and _is_forward(item)) and kind not in _INTEGERS and item is not Ellipsis:
            return None
    return _request_or_none(requests.orthogonal, items, bound.shape) if arrays else None


def coordinate(bound: BoundArray, selection: object) -> Request | None:
    """Convert one integer array per axis, of one or more axes each."""
    items = _items(selection)
    for item in items:
        if not (item.__class__ is np.ndarray and item.ndim and item.dtype.kind in "iu" and item.size):
            return None
    return _request_or_none(requests.coordinate, items, bound.shape) if len(items) == len(bound.shape) else None


def mask(bound: BoundArray, selection: object) -> Request | None:
    """Convert a mask of the array's shape."""
    if isinstance(selection, tuple) and selection.__class__ is tuple and len(selection) == 1:
        selection = selection[0]
    if selection.__class__ is not np.ndarray or not isinstance(selection, np.ndarray):  # a subclass may index otherwise
        return None
    good = selection.dtype.kind == "b" and selection.shape == bound.shape and selection.ndim
    return _request_or_none(requests.mask, selection, bound.shape) if good else None


def _is_forward(item: slice) -> bool:
    start, stop, step = item.start, item.stop, item.step
    goes_forward = step is None or (step.__class__ is int and step >= 1)
    return goes_forward and start.__class__ in _BOUNDS and stop.__class__ in _BOUNDS


def _request_or_none(
    plan: Callable[[_S, tuple[int, ...]], Request], selection: _S, shape: tuple[int, ...]
) -> Request | None:
    """Return the request of `plan`; ``None`` where it raises, so that zarr-python raises its own error."""
    try:
        return plan(selection, shape)
    except (IndexError, ValueError, TypeError):
        return None


# -- from indexers -------------------------------------------------------------------------------------------------------


def of_indexer(indexer: Any) -> Request | None:
    """Convert an indexer of zarr-python; ``None`` for an unknown class."""
    name = type(indexer).__name__
    if type(indexer).__module__ != "zarr.core.indexing":
        return None
    if name in ("BasicIndexer", "OrthogonalIndexer", "BlockIndexer"):
        return _of_axes(indexer)
    if name in ("CoordinateIndexer", "MaskIndexer"):
        return _of_points(indexer)
    return None


def _of_axes(indexer: BasicIndexer | OrthogonalIndexer | BlockIndexer) -> Request | None:
    dims: list[slice | npt.NDArray[np.int64]] = []
    pick: list[int | slice] = []
    for axis in indexer.dim_indexers:
        read = _AXES.get(type(axis).__name__)
        if read is None:
            return None
        dims.append(read(axis))
        pick.append(0 if read is _integer else FORWARD)
    return Request(Outer(tuple(dims)), tuple(indexer.shape), tuple(pick) if 0 in pick else None)


def _integer(axis: IntDimIndexer) -> slice:
    return slice(int(axis.dim_sel), int(axis.dim_sel) + 1, 1)


def _slice(axis: SliceDimIndexer) -> slice:
    count = int(axis.nitems)
    if count <= 0:
        return slice(0, 0, 1)
    return slice(
        int(axis.start), int(axis.start) + (count - 1) * int(axis.step) + 1, int(axis.step) if count > 1 else 1
    )


def _integers(axis: IntArrayDimIndexer) -> npt.NDArray[np.int64]:
    """Return the positions in the user's order; the indexer has them sorted by chunk."""
    positions = np.asarray(axis.dim_sel, np.int64)
    if axis.dim_out_sel is None:
        return positions
    unsorted = np.empty_like(positions)
    unsorted[axis.dim_out_sel] = positions
    return unsorted


def _mask(axis: BoolArrayDimIndexer) -> npt.NDArray[np.int64]:
    return np.flatnonzero(axis.dim_sel).astype(np.int64, copy=False)


_AXES: dict[str, Callable[[Any], slice | npt.NDArray[np.int64]]] = {
    "IntDimIndexer": _integer,
    "SliceDimIndexer": _slice,
    "IntArrayDimIndexer": _integers,
    "BoolArrayDimIndexer": _mask,
}


def _of_points(indexer: CoordinateIndexer | MaskIndexer) -> Request | None:
    coords = tuple(np.asarray(axis, np.int64) for axis in indexer.selection)
    if not coords or coords[0].shape != tuple(indexer.shape):
        return None
    if indexer.sel_sort is not None:
        order = np.empty(len(coords[0]), np.intp)
        order[indexer.sel_sort] = np.arange(len(order))
        coords = tuple(axis[order] for axis in coords)
    selection: Selection = Points(coords)
    return Request(selection, tuple(indexer.shape))
