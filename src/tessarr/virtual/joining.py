"""Make virtual arrays: `concat`, `stack` and `merge`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from tessarr.core.array import Array
from tessarr.core.array_parts.lazy_view import View
from tessarr.core.creation.array_config import DEFAULT
from tessarr.core.creation.metadata import new_array_metadata
from tessarr.dtypes.base import DataType
from tessarr.dtypes.parse import from_numpy
from tessarr.grids.guess import guess_chunks
from tessarr.indexing.transform import Affine
from tessarr.types import Shape
from tessarr.virtual.engine import Piece, VirtualEngine
from tessarr.virtual.store import VirtualStore

ArrayOrView: TypeAlias = Array | View
Names: TypeAlias = Sequence[str | None] | None
_Position = TypeVar("_Position", bound=tuple[int, ...])


def concat(
    arrays: Iterable[ArrayOrView],
    axis: int = 0,
    *,
    dimension_names: Names = None,
    attributes: Mapping[str, object] | None = None,
) -> Array:
    """Join arrays, or views of them, along an axis that they have.

    `arrays`: of one data type, and of equal lengths on all other axes; from any stores. Names of dimensions and fill value are
    those of the first one, unless `dimension_names` are given; `attributes`: none. Reads no elements. Raises `ValueError` where
    shapes or data types differ, `IndexError` for an axis that they do not have.

    >>> import tessarr
    >>> from tessarr import virtual
    >>> z = virtual.concat([tessarr.array([1, 2]), tessarr.array([3]).lazy[::-1]])
    >>> z[::2].tolist(), z.lazy[1:].shape
    ([1, 3], (2,))
    """
    views = _views(arrays)
    at = range(len(views[0].shape))[axis]
    _require_equal([view.shape[:at] + view.shape[at + 1 :] for view in views], f"shapes, apart from axis {at},")
    starts = accumulate((view.shape[at] for view in views), initial=0)
    ndim = len(views[0].shape)
    pieces = [
        Piece((0,) * at + (start,) + (0,) * (ndim - at - 1), view) for start, view in zip(starts, views, strict=False)
    ]
    length = sum(view.shape[at] for view in views)
    shape = (*views[0].shape[:at], length, *views[0].shape[at + 1 :])
    facts = _axes(views[0])
    joined = [_axes(view)[at].blocks for view in views]
    blocks = None if None in joined else [size for some in joined if some is not None for size in some]
    facts[at] = _Axis(facts[at].name, blocks)
    return _array(pieces, shape, facts, dimension_names, attributes, tiles=True)


def stack(
    arrays: Iterable[ArrayOrView],
    axis: int = 0,
    *,
    dimension_names: Names = None,
    attributes: Mapping[str, object] | None = None,
) -> Array:
    """Stack arrays, or views of them, along a new axis, which is the axis `axis` of the result.

    `arrays`: of one shape and data type, from any stores. The other arguments, and errors: see `concat`.

    >>> import tessarr
    >>> from tessarr import virtual
    >>> virtual.stack([tessarr.array([1, 2]), tessarr.array([3, 4])], axis=-1)[0].tolist()
    [1, 3]
    """
    views = _views(arrays)
    _require_equal([view.shape for view in views], "shapes")
    at = range(len(views[0].shape) + 1)[axis]
    facts = _axes(views[0])
    facts.insert(at, _Axis(None, [1] * len(views)))
    ndim = len(facts)
    pieces = [
        Piece((0,) * at + (index,) + (0,) * (ndim - at - 1), view.expand_dims(at)) for index, view in enumerate(views)
    ]
    shape = (*views[0].shape[:at], len(views), *views[0].shape[at:])
    return _array(pieces, shape, facts, dimension_names, attributes, tiles=True)


def merge(
    parts: Mapping[_Position, ArrayOrView] | Iterable[tuple[_Position, ArrayOrView]],
    shape: Shape | None = None,
    *,
    fill_value: object = DEFAULT,
    dimension_names: Names = None,
    attributes: Mapping[str, object] | None = None,
) -> Array:
    """Place arrays, or views of them, at positions in one array.

    `parts`: the position of the first element → the array, of one data type and number of axes, from any stores; where parts
    overlap, the last one counts. `shape`: ``None`` is as large as the parts need. Other elements are `fill_value`, which is
    that of the first array unless given. The other arguments, and errors: see `concat`; `ValueError` for a part that is not
    within `shape`.

    >>> import tessarr
    >>> from tessarr import virtual
    >>> virtual.merge({(1,): tessarr.array([1, 2, 3]), (3,): tessarr.array([7])}, (6,), fill_value=0)[...].tolist()
    [0, 1, 2, 7, 0, 0]
    """
    placed = cast("list[tuple[Shape, ArrayOrView]]", list(parts.items() if isinstance(parts, Mapping) else parts))
    starts: list[Shape] = [tuple([int(n) for n in start]) for start, _ in placed]
    views = _views(array for _, array in placed)
    ranks = [len(start) for start in starts] + [view.ndim for view in views]
    if len(set(ranks)) > 1 or min(min(start, default=0) for start in starts) < 0:
        raise ValueError(
            f"a position is one integer from 0 on per axis, and all parts have one number of axes; got {ranks}"
        )
    stops = np.array([np.add(start, view.shape) for start, view in zip(starts, views, strict=True)], np.int64)
    needed: Shape = tuple(stops.max(axis=0).tolist())
    whole = needed if shape is None else tuple([int(n) for n in shape])
    if len(whole) != len(needed) or any(n > m for n, m in zip(needed, whole, strict=True)):
        raise ValueError(f"the parts reach to {needed}, which is not within the shape {whole}")
    facts = [_Axis(axis.name, axis.blocks and [axis.blocks[0]]) for axis in _axes(views[0])]
    pieces = [Piece(start, view) for start, view in zip(starts, views, strict=True)]
    return _array(pieces, whole, facts, dimension_names, attributes, fill_value, tiles=False)


class _Axis(NamedTuple):
    """What is known of an axis of a view."""

    name: str | None = None
    blocks: list[int] | None = None
    """Sizes of the stored values along the axis; ``None``: positions along it are not consecutive."""


def _axes(view: View) -> list[_Axis]:
    """Describe the axes of a view by those of its array."""
    array = view.array
    names = array.dims or (None,) * array.ndim
    found = [_Axis()] * view.ndim
    for axis, one in enumerate(view._transform.maps):
        if isinstance(one, Affine):
            found[one.axis] = _Axis(
                names[axis], _blocks(array, axis, one, view.shape[one.axis]) if one.step == 1 else None
            )
    return [
        _Axis(None, [1]) if length == 1 and axis == _Axis() else axis
        for axis, length in zip(found, view.shape, strict=True)
    ]


def _blocks(array: Array, axis: int, where: Affine, length: int) -> list[int]:
    """Return the sizes of the parts of `length` elements from a position on that are in different stored values."""
    edges = np.cumsum((0, *array.write_chunk_sizes[axis]))
    inside = edges[(edges > where.start) & (edges < where.start + length)]
    return [int(size) for size in np.diff([where.start, *inside, where.start + length])] if length else []


def _views(arrays: Iterable[ArrayOrView]) -> list[View]:
    views: list[View] = []
    for array in arrays:
        if not isinstance(array, Array | View):
            raise TypeError(f"virtual arrays are made of arrays and views of tessarr, got a {type(array).__name__}")
        views.append(array.lazy if isinstance(array, Array) else array)
    if not views:
        raise ValueError("a virtual array needs at least one array")
    _require_equal([_data_type(view).dtype for view in views], "data types")
    return views


def _data_type(view: View) -> DataType:
    return (from_numpy(view.dtype) if view._fields else view.array._metadata.data_type).with_byteorder("=")


def _require_equal(values: Sequence[object], what: str) -> None:
    for index, value in enumerate(values):
        if value != values[0]:
            raise ValueError(
                f"the {what} of the arrays differ: the first one has {values[0]}, number {index} has {value}"
            )


def _array(
    pieces: Sequence[Piece],
    shape: Shape,
    axes: Sequence[_Axis],
    names: Names,
    attributes: Mapping[str, object] | None,
    fill_value: object = DEFAULT,
    *,
    tiles: bool,
) -> Array:
    first = pieces[0].view
    if fill_value is DEFAULT and not first._fields and first.array._metadata.fill_value is not None:
        fill_value = first.array._metadata.fill_value
    if names is None and any(axis.name is not None for axis in axes):
        names = [axis.name for axis in axes]
    metadata = new_array_metadata(
        shape=shape,
        dtype=_data_type(first),
        chunks=_chunks(axes, shape, first.dtype.itemsize),
        compressors=None,
        fill_value=fill_value,
        attributes=attributes,
        dimension_names=names,
    )
    return VirtualStore(metadata, VirtualEngine(pieces, tiles=tiles)).array()


def _chunks(axes: Sequence[_Axis], shape: Shape, itemsize: int) -> tuple[int | list[int], ...]:
    """Choose chunks of which each is in one stored value of one array, so that whole chunks are read from whole values."""
    if any(axis.blocks is None for axis in axes):
        return guess_chunks(shape, itemsize)
    return tuple(_uniform(axis.blocks or [1]) for axis in axes)


def _uniform(blocks: list[int]) -> int | list[int]:
    *most, last = blocks
    return blocks[0] if all(size == blocks[0] for size in most) and last <= blocks[0] else blocks
