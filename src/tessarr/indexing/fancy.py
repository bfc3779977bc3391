"""Index as NumPy does: slices of any step mixed with integer arrays and masks that broadcast together.

>>> fancy((slice(None), [[0, 1], [2, 0]], slice(None, None, -1)), (5, 3, 4)).shape
(5, 2, 2, 4)
>>> fancy(([0, 1], slice(None), [2, 3]), (5, 3, 4)).shape
(2, 3)

Index arrays that vary along different dimensions (``np.ix_``, or a single array of any shape) are an outer product and
become `Outer`; others become `Points`, with one coordinate per element selected and axis.

Source: NumPy reference, "Indexing on ndarrays", "Combining advanced and basic indexing".
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tessarr.errors import ArrayIndexError
from tessarr.indexing.base import BACKWARD, FORWARD, Request, expand, indices, integer, interval, is_integer
from tessarr.indexing.basic import basic, refusal
from tessarr.indexing.orthogonal import as_index_array
from tessarr.indexing.points import at_points
from tessarr.indexing.selection import IndexArray, Outer
from tessarr.types import Shape


def fancy(selection: object, shape: Shape) -> Request:
    """Select like NumPy, except for `newaxis` and lone booleans.

    Integer arrays (lists too) broadcast together; a mask of n dimensions stands for the n arrays of its ``nonzero``;
    integers beside arrays count as arrays. The broadcast dimensions replace the arrays when those are adjacent, else
    they come first.

    Raises `BoundsCheckError` when a position lies outside its axis, `ArrayIndexError` when arrays do not broadcast, a
    mask does not fit its axes, or `selection` holds anything else.
    """
    items = tuple(_item(item) for item in (selection if isinstance(selection, tuple) else (selection,)))
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    if not arrays:
        return basic(items, shape)
    used = sum(item.ndim if _is_mask(item) else item is not Ellipsis for item in items)
    dims = _dims(expand(items, len(shape), used), shape)
    advanced = {axis: dim for axis, dim in enumerate(dims) if isinstance(dim, np.ndarray)}
    try:
        common = np.broadcast_shapes(*[array.shape for array in advanced.values()])
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in advanced.values())
        raise ArrayIndexError("index arrays do not broadcast together", got=f"shapes {shapes}") from None
    where = min(advanced) if _adjacent(items) else 0
    owners = _owners(advanced, common)
    if owners is None:
        return _as_points(dims, common, where)
    return _as_outer(dims, owners, common, where)


def _item(item: object) -> Any:
    """Return an item of an index, as an array unless it is an integer, a slice or Ellipsis."""
    if isinstance(item, slice) or item is Ellipsis or is_integer(item):
        return item
    array = as_index_array(item)
    if array.ndim:
        return array
    if array.dtype.kind == "b":
        raise refusal(array.item())
    return int(array)


def _is_mask(item: object) -> bool:
    return isinstance(item, np.ndarray) and item.dtype.kind == "b"


def _adjacent(items: tuple[object, ...]) -> bool:
    """Return whether no slice or Ellipsis separates two advanced indices (integers are advanced here)."""
    at = [i for i, item in enumerate(items) if not isinstance(item, slice) and item is not Ellipsis]
    return at[-1] - at[0] == len(at) - 1


def _dims(items: list[Any], shape: Shape) -> list[tuple[slice, int, bool] | IndexArray]:
    """Normalize each axis to an `interval`, or a non-negative index array of any shape."""
    dims: list[tuple[slice, int, bool] | IndexArray] = []
    for item in items:
        axis = len(dims)
        if isinstance(item, slice):
            dims.append(interval(item, shape[axis]))
        elif is_integer(item):
            dims.append(np.array(integer(item, shape[axis], axis), np.int64))
        elif _is_mask(item):
            if item.shape != tuple(shape[axis : axis + item.ndim]):
                raise ArrayIndexError(
                    f"a mask must have the shape of the axes it selects from, here from axis {axis}",
                    expected=tuple(shape[axis : axis + item.ndim]),
                    got=item.shape,
                )
            dims += [positions.astype(np.int64, copy=False) for positions in np.nonzero(item)]
        else:
            dims.append(indices(item, shape[axis], axis))
    return dims


def _owners(advanced: dict[int, IndexArray], common: Shape) -> dict[int, list[int]] | None:
    """Find, per advanced axis, the broadcast dimensions along which its array varies; ``None`` when two axes share
    one.
    """
    owners: dict[int, list[int]] = {}
    seen: set[int] = set()
    for axis, array in advanced.items():
        lead = len(common) - array.ndim
        owners[axis] = [lead + i for i, size in enumerate(array.shape) if size != 1]
        if seen.intersection(owners[axis]):
            return None
        seen.update(owners[axis])
    return owners


def _as_outer(
    dims: list[tuple[slice, int, bool] | IndexArray], owners: dict[int, list[int]], common: Shape, where: int
) -> Request:
    """Make the request for arrays that vary along different dimensions.

    The full-rank result loses the axes of single positions, has each array's axis split into the array's dimensions,
    gains the dimensions of length 1 that no array has, and is transposed into NumPy's order.
    """
    outer: list[slice | IndexArray] = []
    pick: list[int | slice] = []
    split: list[int] = []
    names: list[tuple[str, int]] = []
    before: list[tuple[int, tuple[str, int]]] = []
    after: list[tuple[int, tuple[str, int]]] = []
    for axis, dim in enumerate(dims):
        if isinstance(dim, tuple):
            outer.append(dim[0])
            pick.append(BACKWARD if dim[2] else FORWARD)
            split.append(dim[1])
            names.append(("slice", axis))
            (before if axis < where else after).append((dim[1], names[-1]))
        elif owners[axis]:
            outer.append(dim.reshape(-1))
            pick.append(FORWARD)
            split += [common[i] for i in owners[axis]]
            names += [("common", i) for i in owners[axis]]
        else:
            at = int(dim.reshape(()))
            outer.append(slice(at, at + 1, 1))
            pick.append(0)
    kept = tuple(n for n, step in zip(Outer(tuple(outer)).shape, pick, strict=True) if isinstance(step, slice))
    for i in range(len(common)):
        if ("common", i) not in names:
            split.append(1)
            names.append(("common", i))
    wanted = [*before, *((n, ("common", i)) for i, n in enumerate(common)), *after]
    order = tuple(names.index(name) for _, name in wanted)
    return Request(
        Outer(tuple(outer)),
        tuple(n for n, _ in wanted),
        None if all(step is FORWARD for step in pick) else tuple(pick),
        None if tuple(split) == kept else tuple(split),
        None if order == tuple(range(len(order))) else order,
    )


def _as_points(dims: list[tuple[slice, int, bool] | IndexArray], common: Shape, where: int) -> Request:
    """Make the request for arrays that vary together, with slices expanded to coordinates."""
    before = [dim[1] for dim in dims[:where] if isinstance(dim, tuple)]
    after = [dim[1] for dim in dims[where:] if isinstance(dim, tuple)]
    shape = (*before, *common, *after)
    coords = []
    at, rank = 0, len(shape)
    for axis, dim in enumerate(dims):
        if isinstance(dim, tuple):
            if axis >= where and at == len(before):
                at += len(common)
            run = np.arange(dim[0].start, dim[0].stop, dim[0].step, dtype=np.int64)[:: -1 if dim[2] else 1]
            coords.append(run.reshape((-1, *[1] * (rank - at - 1))))
            at += 1
        else:
            coords.append(dim.reshape((*dim.shape, *[1] * len(after))))
    if not prod(shape):
        coords = [np.zeros(1, np.int64)] * len(dims)
    return at_points([np.broadcast_to(array, shape) for array in coords], shape)
