"""Orthogonal selections: an integer, slice, index array or mask per axis, combined as an outer product.

>>> orthogonal(([2, 0], slice(None), [False, True, True]), (3, 4, 3)).shape
(2, 4, 2)
>>> orthogonal((1, [2, 0]), (3, 4)).shape
(2,)
"""

from __future__ import annotations

import numpy as np

from tessarr.errors import ArrayIndexError
from tessarr.indexing.base import BACKWARD, FORWARD, Request, indices, integer, interval, is_integer
from tessarr.indexing.basic import expand_basic, refusal
from tessarr.indexing.selection import IndexArray, Outer
from tessarr.types import AnyArray, Shape


def orthogonal(selection: object, shape: Shape) -> Request:
    """Select by an integer, slice, 1-d integer array or 1-d boolean mask per axis, independently.

    Integers drop their axis; lists count as arrays; one Ellipsis may stand for axes selected whole. Index arrays may be
    in any order and repeat.

    Raises `BoundsCheckError` when a position lies outside its axis, `ArrayIndexError` for masks of another length than
    their axis, arrays that are not 1-d, and anything else in `selection`.
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    dims: list[slice | IndexArray] = []
    pick: list[int | slice] = []
    sizes: list[int] = []
    for axis, (item, length) in enumerate(zip(expand_basic(items, len(shape), "orthogonal"), shape, strict=True)):
        if isinstance(item, slice):
            dim, size, backwards = interval(item, length)
            dims.append(dim)
            sizes.append(size)
            pick.append(BACKWARD if backwards else FORWARD)
        elif is_integer(item):
            at = integer(item, length, axis)
            dims.append(slice(at, at + 1, 1))
            pick.append(0)
        else:
            array = _positions(item, length, axis)
            dims.append(array)
            sizes.append(len(array))
            pick.append(FORWARD)
    plain = all(step is FORWARD for step in pick)
    return Request(Outer(tuple(dims)), tuple(sizes), None if plain else tuple(pick))


def _positions(item: object, length: int, axis: int) -> IndexArray:
    """Convert one axis' index array or mask to positions."""
    array = as_index_array(item, "orthogonal")
    if array.ndim != 1:
        raise ArrayIndexError(
            f"{'Boolean' if array.dtype.kind == 'b' else 'integer'} arrays in an orthogonal selection must be 1-dimensional "
            f"only; the one for axis {axis} has {array.ndim} dimensions"
        )
    if array.dtype.kind != "b":
        return indices(array, length, axis)
    if len(array) != length:
        raise ArrayIndexError(
            f"a mask has the wrong length for dimension; expected {length}, got {len(array)}; axis {axis}"
        )
    return np.flatnonzero(array).astype(np.int64, copy=False)


def as_index_array(item: object, kind: str = "basic") -> AnyArray:
    """Convert `item` to an array of integers or booleans; an empty list is an integer array. `kind` of indexing: for errors.

    Raises `ArrayIndexError` for other dtypes.
    """
    if item is None or isinstance(item, str | bytes | bool | np.bool_ | float | np.inexact):
        raise refusal(item, kind)
    try:
        array = np.asarray(item)
    except (ValueError, TypeError):
        raise refusal(item, kind) from None
    if not array.size and not hasattr(item, "dtype"):
        return array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise ArrayIndexError("arrays used as indices must be of integer or boolean type", got=f"dtype {array.dtype}")
    return array
