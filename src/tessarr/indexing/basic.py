"""Basic selections: integers, slices with any step, and an Ellipsis.

>>> request = basic((-1, slice(None, None, -2)), (4, 6))
>>> request.selection
Outer(dims=(slice(3, 4, 1), slice(1, 6, 2)))
>>> request.shape, request.selection.shape
((3,), (1, 3))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tessarr.errors import ArrayIndexError
from tessarr.indexing.base import BACKWARD, FORWARD, Request, expand, integer, interval, is_integer
from tessarr.indexing.selection import Outer
from tessarr.types import Shape


def basic(selection: Any, shape: Shape) -> Request:
    """Select by integers (which drop their axis), slices (of any step but 0) and at most one Ellipsis.

    `selection` is one of these or a tuple of them; axes that it leaves out are selected whole.

    Raises `BoundsCheckError` when an integer lies outside its axis, `ArrayIndexError` for anything else in `selection`.
    """
    items: Sequence[object] = selection if isinstance(selection, tuple) else (selection,)
    if len(items) != len(shape) or Ellipsis.__class__ in map(type, items):
        items = expand_basic(tuple(items), len(shape))
    dims: list[slice] = []
    pick: list[int | slice] = []
    sizes: list[int] = []
    full: list[int] = []
    plain = True
    for item, length in zip(items, shape, strict=True):
        if item.__class__ is slice:
            dim, size, backwards = interval(item, length)
            dims.append(dim)
            sizes.append(size)
            full.append(size)
            pick.append(BACKWARD if backwards else FORWARD)
            plain = plain and not backwards
        elif item.__class__ is int or is_integer(item):
            at = item if item.__class__ is int and 0 <= item < length else integer(item, length, len(dims))
            dims.append(slice(at, at + 1, 1))
            pick.append(0)
            full.append(1)
            plain = False
        else:
            raise refusal(item)
    return Request(Outer(tuple(dims)), tuple(sizes), None if plain else tuple(pick), full_shape=tuple(full))


def expand_basic(items: tuple[object, ...], ndim: int, kind: str = "basic") -> list[Any]:
    """Refuse items that are never indices of this `kind` of indexing, then `expand` the others."""
    for item in items:
        if item is None:
            raise refusal(item, kind)
    return expand(items, ndim)


def refusal(item: object, kind: str = "basic") -> ArrayIndexError:
    """Make the error for an `item` that is not an index in this `kind` of indexing."""
    if isinstance(item, bool | np.bool_):
        return ArrayIndexError("a lone boolean is not an index", got=repr(item))
    expected = "integer or slice" if kind == "basic" else "integer, slice, or array of integers or booleans"
    message = f"unsupported selection item for {kind} indexing; expected {expected}, got {type(item)}"
    if item is None:
        return ArrayIndexError(
            message, hint="newaxis (None) cannot be used: read first, then add the axis to the result"
        )
    return ArrayIndexError(message, got=repr(item)[:200])
