"""Select points: coordinate arrays broadcast together, or a mask of the whole array (``vindex``).

>>> request = coordinate(([0, 2], [[1], [3]]), (3, 4))
>>> request.shape, request.selection.shape
((2, 2), (4,))
>>> mask([[True, False], [False, True]], (2, 2)).shape
(2,)

On a 1-d array the points are an `Outer` of one index array, which engines serve faster.
"""

from __future__ import annotations

import numpy as np

from tessarr.errors import ArrayIndexError, VindexInvalidSelectionError
from tessarr.indexing.base import Request, indices
from tessarr.indexing.orthogonal import as_index_array
from tessarr.indexing.selection import IndexArray, Outer, Points
from tessarr.types import AnyArray, Shape


def coordinate(selection: object, shape: Shape) -> Request:
    """Select points by one integer or integer array per axis, broadcast together; the result has their common shape.

    Integers alone give shape ``(1,)``, as in zarr-python.

    Raises `BoundsCheckError` when a position lies outside its axis, `VindexInvalidSelectionError` when the arrays are
    not one per axis, not integer, or do not broadcast together.
    """
    items = selection if isinstance(selection, tuple) else (selection,)
    arrays = [as_index_array(item, "coordinate") for item in items]
    if len(arrays) != len(shape) or not arrays or any(array.dtype.kind == "b" for array in arrays):
        raise VindexInvalidSelectionError(
            "invalid coordinate selection", expected=f"one integer array per axis ({len(shape)})", got=_kinds(arrays)
        )
    coords = [indices(array, length, axis) for axis, (array, length) in enumerate(zip(arrays, shape, strict=True))]
    try:
        coords = list(np.broadcast_arrays(*coords))
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise VindexInvalidSelectionError(
            "coordinate arrays do not broadcast together", got=f"shapes {shapes}"
        ) from None
    return at_points(coords, coords[0].shape or (1,))


def mask(selection: object, shape: Shape) -> Request:
    """Select the points where a boolean array of the array's shape is true, in C order; the result is 1-d.

    Raises `VindexInvalidSelectionError` for any other `selection`.
    """
    if isinstance(selection, tuple) and len(selection) == 1:
        (selection,) = selection
    array = as_index_array(selection, "coordinate")
    if array.dtype.kind != "b" or array.shape != tuple(shape) or not shape:
        raise VindexInvalidSelectionError(
            "invalid mask selection", expected=f"one boolean array of shape {tuple(shape)}", got=_kinds([array])
        )
    coords = [axis.astype(np.int64, copy=False) for axis in np.nonzero(array)]
    return at_points(coords, coords[0].shape)


def vindex(selection: object, shape: Shape) -> Request:
    """Select by `mask` for one boolean array, otherwise by `coordinate`."""
    item = selection[0] if isinstance(selection, tuple) and len(selection) == 1 else selection
    if isinstance(item, tuple | slice) or item is Ellipsis:
        return coordinate(selection, shape)
    try:
        boolean = as_index_array(item, "coordinate").dtype.kind == "b"
    except ArrayIndexError as error:
        raise VindexInvalidSelectionError(error.what, expected=error.expected, got=error.got) from error
    return mask(item, shape) if boolean else coordinate(selection, shape)


def at_points(coords: list[IndexArray], shape: Shape) -> Request:
    """Make the request for points at `coords`, arrays with as many elements as `shape`, within bounds."""
    flat = tuple(array.reshape(-1) for array in coords)
    selection = Outer(flat) if len(flat) == 1 else Points(flat)
    return Request(selection, shape, split=None if len(shape) == 1 else shape)


def _kinds(arrays: list[AnyArray]) -> str:
    """Describe data types and shapes of `arrays` for messages."""
    return ", ".join(f"{array.dtype} {array.shape}" for array in arrays) or "nothing"
