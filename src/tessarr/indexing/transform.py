"""Index transforms: where in an array each element of a view of it is. Composed without I/O, and turned into a `Request`.

A transform has a shape, and a *map* for each axis of the array: how the position on it follows from an index of the view.

    Fixed(at)                    one position
    Affine(axis, start, step)    start + step * index[axis]
    Indices(positions)           positions[index], an array that broadcasts to the view's shape

>>> IndexTransform.identity((4, 6)).select((slice(None, None, -1), 2)).select(1).maps
(Fixed(at=2), Fixed(at=2))

Source: TensorStore, "Index transforms": its three kinds of output index maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self, TypeAlias

import numpy as np

from tessarr.errors import ArrayIndexError, BoundsCheckError
from tessarr.indexing.base import BACKWARD, FORWARD, Request, expand
from tessarr.indexing.fancy import fancy
from tessarr.indexing.points import at_points
from tessarr.indexing.request import getitem
from tessarr.indexing.selection import IndexArray, Outer, Points
from tessarr.types import Shape


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same position for every index."""

    at: int


@dataclass(frozen=True, slots=True)
class Affine:
    """Positions at equal distances along one axis of the view. `step` is not 0, and may be negative."""

    axis: int
    start: int
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class Indices:
    """Positions in an array with the view's number of axes, of length 1 where they are the same for every index."""

    positions: IndexArray

    @property
    def axes(self) -> list[int]:
        """The axes along which the positions vary."""
        return [axis for axis, length in enumerate(self.positions.shape) if length != 1]


Map: TypeAlias = Fixed | Affine | Indices


@dataclass(frozen=True, slots=True, eq=False)
class IndexTransform:
    """A view's `shape`, and per axis of the array the map of its positions. Immutable."""

    shape: Shape
    maps: tuple[Map, ...]

    @classmethod
    def identity(cls, shape: Shape) -> Self:
        """Every element of an array of `shape`, in place."""
        return cls(shape, tuple(Affine(axis, 0, 1) for axis in range(len(shape))))

    # -- views of the view ---------------------------------------------------------------------------------------------

    def select(self, selection: object) -> Self:
        """Select as ``array[selection]`` does on an array of this shape. A selection with ``None``, which adds an axis of
        length 1, means what it means in NumPy.

        Raises `ArrayIndexError`, also its subclass `BoundsCheckError`.
        """
        items = selection if isinstance(selection, tuple) else (selection,)
        if any(item is None for item in items):
            at, items = _new_axes(items, len(self.shape))
            return self._with_new_axes(at).request(lambda shape: fancy(items, shape))
        return self.request(lambda shape: getitem(items, shape))

    def request(self, plan: Callable[[Shape], Request]) -> Self:
        """Select what `plan` requests from an array of this shape, as the functions of `tessarr.indexing.request` do."""
        request = plan(self.shape)
        inner = transform_of(request)
        return type(self)(request.shape, tuple(_composed(one, inner) for one in self.maps))

    def transpose(self, order: Sequence[int]) -> Self:
        """Put the axes in `order`: the new axis k is the axis ``order[k]``. Raises `ValueError` unless it is a permutation."""
        ndim = len(self.shape)
        axes = [axis + ndim if axis < 0 else axis for axis in order]
        if sorted(axes) != list(range(ndim)):
            raise ValueError(f"axes must be a permutation of the {ndim} axes, got {tuple(order)}")
        maps = tuple(_transposed(one, axes) for one in self.maps)
        return type(self)(tuple(self.shape[axis] for axis in axes), maps)

    def _with_new_axes(self, at: list[int]) -> Self:
        """Add axes of length 1, so that they are the axes `at` (ascending) of the result."""
        shape = list(self.shape)
        for axis in at:
            shape.insert(axis, 1)
        kept = [axis for axis in range(len(shape)) if axis not in at]
        maps: list[Map] = []
        for one in self.maps:
            if isinstance(one, Affine):
                maps.append(Affine(kept[one.axis], one.start, one.step))
            elif isinstance(one, Indices):
                maps.append(Indices(np.expand_dims(one.positions, at)))
            else:
                maps.append(one)
        return type(self)(tuple(shape), tuple(maps))

    # -- the array -------------------------------------------------------------------------------------------------------

    def as_request(self, shape: Shape) -> Request:
        """Return the request for the view's elements of an array that has `shape` now.

        Raises `BoundsCheckError` when the array has become shorter than the view needs, `ArrayIndexError` for a 0-d array
        whose element the view repeats.
        """
        self._require(shape)
        owned = [_owned(one) for one in self.maps]
        axes = [axis for some in owned for axis in some]
        repeated = any(length != 1 for axis, length in enumerate(self.shape) if axis not in axes)
        if len(axes) == len(set(axes)) and not repeated:
            return self._as_outer(owned)
        if not self.maps:
            raise ArrayIndexError("a view cannot repeat the element of a 0-d array", got=f"shape {self.shape}")
        coords = [_positions(one, self.shape) for one in self.maps]
        return at_points([np.broadcast_to(array, self.shape) for array in coords], self.shape)

    def _require(self, shape: Shape) -> None:
        if not prod(self.shape):
            return
        for axis, (one, length) in enumerate(zip(self.maps, shape, strict=True)):
            last = _last(one, self.shape)
            if last >= length:
                raise BoundsCheckError(
                    f"the view needs position {last} of axis {axis}, which has length {length} now",
                    hint="The array was made shorter after the view was made; make it again",
                )

    def _as_outer(self, owned: list[list[int]]) -> Request:
        """Make the request for maps that vary along different axes of the view.

        The full-rank result loses the axes of fixed positions, has the axis of each array of positions split into the
        array's axes, gains the axes that no map has, and is transposed into the view's order.
        """
        dims: list[slice | IndexArray] = []
        pick: list[int | slice] = []
        names: list[int] = []
        for one, axes in zip(self.maps, owned, strict=True):
            dim, step = _dim(one, self.shape)
            dims.append(dim)
            pick.append(step)
            names += axes
        kept = tuple(n for n, step in zip(Outer(tuple(dims)).shape, pick, strict=True) if isinstance(step, slice))
        names += [axis for axis in range(len(self.shape)) if axis not in names]
        split = tuple(self.shape[axis] for axis in names)
        order = tuple(np.argsort(names).tolist())
        return Request(
            Outer(tuple(dims)),
            self.shape,
            None if all(step is FORWARD for step in pick) else tuple(pick),
            None if split == kept else split,
            None if order == tuple(range(len(order))) else order,
        )


def transform_of(request: Request) -> IndexTransform:
    """Return the transform that selects what `request` selects."""
    shape, selection = request.shape, request.selection
    if not prod(shape):
        rank = len(selection.dims) if isinstance(selection, Outer) else len(selection.coords)
        return IndexTransform(shape, (Indices(np.zeros(shape, np.int64)),) * rank)
    pick, groups = request.axes_of_selection()
    if isinstance(selection, Points):  # one axis, which all maps share
        return IndexTransform(shape, tuple(_placed(one, groups[0], shape) for one in selection.coords))
    maps: list[Map] = []
    left = iter(groups)
    for dim, step in zip(selection.dims, pick, strict=True):
        axes = next(left) if isinstance(step, slice) else []
        if not isinstance(dim, slice):
            maps.append(_placed(dim, axes, shape))
        elif not axes:
            maps.append(Fixed(dim.start))
        elif step == BACKWARD:
            maps.append(Affine(axes[0], dim.stop - 1, -dim.step))
        else:
            maps.append(Affine(axes[0], dim.start, dim.step))
    return IndexTransform(shape, tuple(maps))


def _placed(positions: IndexArray, axes: list[int], shape: Shape) -> Map:
    """Return the map of `positions` (1-d, in C order) along `axes` of a view of `shape`."""
    if not axes:
        return Fixed(int(positions[0]))
    array = positions.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes))
    return Indices(array.reshape([length if axis in axes else 1 for axis, length in enumerate(shape)]))


def _composed(one: Map, inner: IndexTransform) -> Map:
    """Return the map of an array's axis when the view that has `one` is viewed through `inner`."""
    if isinstance(one, Affine):
        then = inner.maps[one.axis]
        if isinstance(then, Fixed):
            return Fixed(one.start + one.step * then.at)
        if isinstance(then, Affine):
            return Affine(then.axis, one.start + one.step * then.start, one.step * then.step)
        return Indices(one.start + one.step * then.positions)
    if isinstance(one, Fixed):
        return one
    varies = one.axes
    index = [_positions(then, inner.shape) if axis in varies else 0 for axis, then in enumerate(inner.maps)]
    positions = one.positions[tuple(index)]
    return Indices(positions) if positions.ndim else Fixed(int(positions))


def _positions(one: Map, shape: Shape) -> IndexArray:
    """Return the positions of a map as an array that broadcasts to the view's `shape`."""
    if isinstance(one, Indices):
        return one.positions
    if isinstance(one, Fixed):
        return np.full((1,) * len(shape), one.at, np.int64)
    run = one.start + one.step * np.arange(shape[one.axis], dtype=np.int64)
    return run.reshape([-1 if axis == one.axis else 1 for axis in range(len(shape))])


def _transposed(one: Map, axes: Sequence[int]) -> Map:
    if isinstance(one, Affine):
        return Affine(axes.index(one.axis), one.start, one.step)
    return Indices(one.positions.transpose(axes)) if isinstance(one, Indices) else one


def _owned(one: Map) -> list[int]:
    """Return the axes of the view along which the positions vary."""
    return [one.axis] if isinstance(one, Affine) else one.axes if isinstance(one, Indices) else []


def _last(one: Map, shape: Shape) -> int:
    """Return the highest position, of a view that is not empty."""
    if isinstance(one, Affine):
        return max(one.start, one.start + one.step * (shape[one.axis] - 1))
    return one.at if isinstance(one, Fixed) else int(one.positions.max())


def _dim(one: Map, shape: Shape) -> tuple[slice | IndexArray, int | slice]:
    """Return what `Outer` selects on one axis, and the step that a `Request` takes with it."""
    if isinstance(one, Indices):
        if one.axes:
            return one.positions.reshape(-1), FORWARD
        one = Fixed(one.positions.item())
    if isinstance(one, Fixed):
        return slice(one.at, one.at + 1, 1), 0
    length = shape[one.axis]
    last = one.start + one.step * (length - 1)
    if length < 2:
        return slice(one.start, one.start + 1, 1) if length else slice(0, 0, 1), FORWARD
    if one.step > 0:
        return slice(one.start, last + 1, one.step), FORWARD
    return slice(last, one.start + 1, -one.step), BACKWARD


def _new_axes(items: tuple[object, ...], ndim: int) -> tuple[list[int], tuple[object, ...]]:
    """Return which axes of the result of adding the new ones are new, and `items` with whole slices for them."""
    used = sum(_consumed(item) for item in items if item is not None and item is not Ellipsis)
    at, axis = [], 0
    for item in expand(items, ndim, used):
        if item is None:
            at.append(axis)
        axis += 1 if item is None else _consumed(item)
    return at, tuple(FORWARD if item is None else item for item in items)


def _consumed(item: object) -> int:
    """Count the axes that an index selects from: those of a mask, else one."""
    array = np.asarray(item) if isinstance(item, list | np.ndarray) else None
    return array.ndim if array is not None and array.dtype.kind == "b" else 1
