"""A request: a full-rank selection, and how the user's array relates to the full-rank result.

The relation has three steps, each the identity in most requests; `Request.view` undoes them in reverse:

    full-rank result ──pick──▶ drop axes and flip ──split──▶ reshape ──order──▶ transpose ──▶ user's array

Only views are made, so an engine can fill the user's array in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tessarr.common.output import too_large
from tessarr.errors import ArrayIndexError, BoundsCheckError
from tessarr.indexing.selection import IndexArray, Selection
from tessarr.types import AnyArray, Shape

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = AnyArray

FORWARD = slice(None)
BACKWARD = slice(None, None, -1)


class Request:
    """Describe what a user selected. Immutable; made by the functions of `tessarr.indexing.request`.

    `selection` is for engines; `shape` is the shape of the user's array.
    """

    __slots__ = ("_order", "_pick", "_split", "full_shape", "selection", "shape")

    selection: Selection
    shape: Shape
    full_shape: Shape
    """The shape of the full-rank result, which is that of the selection."""
    _pick: tuple[int | slice, ...] | None
    _split: Shape | None
    _order: tuple[int, ...] | None

    def __init__(
        self,
        selection: Selection,
        shape: Shape,
        pick: tuple[int | slice, ...] | None = None,
        split: Shape | None = None,
        order: tuple[int, ...] | None = None,
        full_shape: Shape | None = None,
    ) -> None:
        """Set the steps: `pick` is one of ``0`` (drop), `FORWARD` and `BACKWARD` per axis; `split` the shape after it;
        `order` the transposition after both. ``None`` omits a step. `full_shape`: ``None`` is that of the selection."""
        self.selection = selection
        self.shape = shape
        self._pick = pick
        self._split = split
        self._order = order
        if full_shape is None:
            full_shape = shape if pick is split is order is None else selection.shape
        self.full_shape = full_shape

    def __repr__(self) -> str:
        return f"Request({self.selection!r}, shape={self.shape})"

    def result(self, full: Array) -> Array:
        """Return the user's array: a view of `full`, which has the selection's shape."""
        if self._pick is not None:
            full = full[(*self._pick, ...)]
        if self._split is not None:
            full = full.reshape(self._split)
        return full if self._order is None else full.transpose(self._order)

    def axes_of_selection(self) -> tuple[tuple[int | slice, ...], list[list[int]]]:
        """Return each axis' step (``0`` drops it, `FORWARD`, `BACKWARD`), and for each kept axis the axes of the user's array
        into which it was split, in C order. For a result that is not empty."""
        lengths = self.selection.shape
        pick = self._pick if self._pick is not None else (FORWARD,) * len(lengths)
        kept = [n for n, step in zip(lengths, pick, strict=True) if step.__class__ is slice]
        split = self._split if self._split is not None else tuple(kept)
        order = self._order if self._order is not None else tuple(range(len(split)))
        place = {axis: at for at, axis in enumerate(order)}
        if self._split is None:
            return pick, [[place[axis]] for axis in range(len(kept))]
        groups: list[list[int]] = []
        axis = 0
        for length in kept:
            groups.append([])
            covered = 1
            while covered < length:
                if split[axis] != 1:
                    groups[-1].append(place[axis])
                covered *= split[axis]
                axis += 1
        return pick, groups

    def view(self, array: Array) -> Array | None:
        """`array` (of the user's shape) seen in the selection's shape, sharing memory; ``None`` when that cannot be."""
        full = self._undo(array)
        return full if self._split is None or not array.size or np.may_share_memory(full, array) else None

    def value(self, array: npt.ArrayLike) -> Array:
        """Broadcast values to be written to the selection's shape; read-only where values repeat.

        Raises `ValueError` when `array` cannot be broadcast to the user's shape as NumPy's assignment does it: leading
        axes of length 1 are dropped, missing and length-1 axes are repeated. Raises `MemoryError` where one value is to be
        repeated more often than there are addresses.
        """
        value: Array = np.asanyarray(array)
        if value.ndim == 0:
            try:
                return np.broadcast_to(value, self.selection.shape)
            except ValueError as error:
                raise too_large(self.selection.shape, value.dtype) from error
        if value.shape != self.shape:
            surplus = value.ndim - len(self.shape)
            if surplus > 0 and set(value.shape[:surplus]) == {1}:
                value = value.reshape(value.shape[surplus:])
            try:
                value = np.broadcast_to(value, self.shape)
            except ValueError:
                raise ValueError(
                    f"Attempting to set an array of shape {np.shape(array)} in a selection of shape {self.shape}"
                ) from None
        return self._undo(value)

    def _undo(self, array: Array) -> Array:
        """Reshape from the user's shape to the selection's; a copy only where a reshape needs one."""
        if self._order is not None:
            array = array.transpose(np.argsort(self._order))
        if self._split is not None:
            shape = self.selection.shape
            if self._pick is not None:
                shape = tuple(n for n, step in zip(shape, self._pick, strict=True) if step.__class__ is slice)
            array = array.reshape(shape)
        if self._pick is not None:
            array = array[(*(step if step.__class__ is slice else None for step in self._pick), ...)]
        return array


def expand(items: tuple[object, ...], ndim: int, used: int | None = None) -> list[Any]:
    """Replace the Ellipsis in `items` by whole slices, and append whole slices for missing axes.

    `used` is the number of axes that the items other than Ellipsis select from; one per item when ``None``.

    Raises `ArrayIndexError` for several Ellipses and for too many indices.
    """
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise ArrayIndexError("an index can only have a single ellipsis ('...')")
    missing = ndim - (len(items) - len(dots) if used is None else used)
    if missing < 0:
        raise ArrayIndexError(f"too many indices for array; expected {ndim}, got {ndim - missing}")
    at = dots[0] if dots else len(items)
    return [*items[:at], *[FORWARD] * missing, *items[at + 1 :]]


def axis_from_front(axis: int, ndim: int, name: str, purpose: str) -> int:
    """Count an axis of the array `name` from the front. Raises `ArrayIndexError` where there is none `purpose`.

    >>> axis_from_front(-1, 2, "/air", "to append along")
    1
    """
    if not -ndim <= axis < ndim:
        raise ArrayIndexError(f"the array has no axis {axis} {purpose}", path=name, got=f"{ndim} axes")
    return range(ndim)[axis]


def is_integer(item: object) -> bool:
    """Return whether `item` is a Python or NumPy integer; booleans are not integers here."""
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def integer(item: Any, length: int, axis: int) -> int:
    """Normalize a position on an axis of `length`; negative ones count from the end. Raises `BoundsCheckError`."""
    position = int(item)
    if -length <= position < length:
        return position + length if position < 0 else position
    raise BoundsCheckError(
        f"index out of bounds for dimension with length {length}; axis {axis}; got {position}",
        hint=None if length else "The axis is empty",
    )


def interval(item: slice, length: int) -> tuple[slice, int, bool]:
    """Normalize a slice on an axis of `length` to ``(ascending slice as in Outer, number of elements, backwards)``.

    Raises `ArrayIndexError` when a bound is not an integer, `ValueError` when the step is 0.
    """
    try:
        start, stop, step = item.indices(length)
    except TypeError:
        raise ArrayIndexError("slice bounds are integers or None", got=item) from None
    if step == 1:
        return (slice(start, stop, 1), stop - start, False) if stop > start else (slice(0, 0, 1), 0, False)
    count = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
    if count <= 0:
        return slice(0, 0, 1), 0, False
    last = start + (count - 1) * step
    if step > 0:
        return slice(start, last + 1, step if count > 1 else 1), count, False
    return slice(last, start + 1, -step if count > 1 else 1), count, count > 1


def indices(item: object, length: int, axis: int) -> IndexArray:
    """Return an integer array of any shape as int64 positions on an axis of `length`; `item` is not modified.

    Raises `BoundsCheckError` when a position lies outside the axis.
    """
    array = np.asarray(item)
    if not array.size:
        return array.astype(np.int64)
    low, high = int(array.min()), int(array.max())
    if low < -length or high >= length:
        raise BoundsCheckError(
            f"index out of bounds for dimension with length {length}; axis {axis}; got {low if low < -length else high}"
        )
    array = array.astype(np.int64, copy=False)
    return np.where(array < 0, array + length, array) if low < 0 else array
