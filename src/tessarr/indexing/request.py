"""Turn an index expression into a `Request`.

`getitem` decides as zarr-python's ``Array.__getitem__`` does, so that code written for it selects the same elements;
selections that zarr-python refuses mean what they mean in NumPy. The two differ where several index arrays meet:

    z[[0, 2], [1, 3]]            two points, as in NumPy
    z[mask_0, mask_1]            one mask per axis: outer product (NumPy: points)
    z[0, :, [1, 3]]              one array beside integers and slices: outer product, axes in place (NumPy: array first)
    z[[0, 2], :, [1, 3]]         refused by zarr-python: as in NumPy, (2, n)
    z[..., [1, 3]], z[::-1]      refused by zarr-python: as in NumPy

>>> getitem((0, slice(None), [1, 3]), (4, 5, 6)).shape, getitem(([0, 2], slice(None), [1, 3]), (4, 5, 6)).shape
((5, 2), (2, 5))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np

from tessarr.indexing.base import Request, is_integer
from tessarr.indexing.basic import basic
from tessarr.types import Shape

if TYPE_CHECKING:
    import numpy.typing as npt

    from tessarr.indexing.block import block, chunk
    from tessarr.indexing.fancy import fancy
    from tessarr.indexing.orthogonal import orthogonal
    from tessarr.indexing.points import coordinate, mask, vindex

__all__ = [
    "Request",
    "basic",
    "block",
    "chunk",
    "coordinate",
    "fancy",
    "getitem",
    "mask",
    "orthogonal",
    "pop_fields",
    "vindex",
    "with_fields",
]

_BASIC = frozenset({int, slice, type(Ellipsis)})
_HOME = {
    "block": "block", "chunk": "block", "fancy": "fancy", "orthogonal": "orthogonal",
    "coordinate": "points", "mask": "points", "vindex": "points",
}  # fmt: skip
"""Names that are imported on first use, because most programs select by integers and slices alone."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tessarr.indexing.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def with_fields(selection: object, shape: Shape) -> tuple[str | list[str] | None, Request]:
    """Resolve ``array[selection]``: return the field names of a structured data type, and the `getitem` of the rest."""
    items = selection if isinstance(selection, tuple) else (selection,)
    if _BASIC.issuperset(map(type, items)):
        return None, basic(items, shape)
    fields, rest = pop_fields(selection)
    return fields, getitem(rest, shape)


def getitem(selection: object, shape: Shape) -> Request:
    """Interpret ``array[selection]`` for an array of `shape`; `pop_fields` removes field names first.

    Raises `ArrayIndexError`, also its subclass `BoundsCheckError`.
    """
    if not isinstance(selection, tuple):
        selection = (selection,)
    if _BASIC.issuperset(map(type, selection)):
        return basic(selection, shape)
    from tessarr.indexing.fancy import fancy
    from tessarr.indexing.orthogonal import orthogonal
    from tessarr.indexing.points import coordinate, mask

    kinds = [_kind(item) for item in selection]
    ndim = len(shape)
    if kinds == ["mask"] and np.shape(cast("npt.ArrayLike", selection[0])) == shape:
        return mask(selection[0], shape)
    full = len(selection) == ndim
    if full and "ints" in kinds and set(kinds) <= {"int", "ints"}:
        return coordinate(selection, shape)
    arrays = sum(kind in ("ints", "mask") for kind in kinds)
    outer = arrays <= 1 and set(kinds) <= {"int", "slice", "ints", "mask"}
    if (outer or (full and arrays == ndim)) and all(_flat(item) for item in selection):
        return orthogonal(selection, shape)
    return fancy(selection, shape)


def _kind(item: object) -> str:
    """Classify an index like zarr-python: int, slice, ints, mask, or (refused there) other."""
    if is_integer(item):
        return "int"
    if isinstance(item, slice):
        return "slice"
    if isinstance(item, list):
        if item and all(map(is_integer, item)):
            return "ints"
        return "mask" if item and all(isinstance(i, bool | np.bool_) for i in item) else "other"
    kind = getattr(getattr(item, "dtype", None), "kind", "")
    if not hasattr(item, "shape") or isinstance(item, np.generic):
        return "other"
    return "ints" if kind in ("i", "u") else "mask" if kind == "b" else "other"


def _flat(item: object) -> bool:
    """Return whether `item` is possible in an orthogonal selection: anything but arrays that are not 1-d."""
    return len(getattr(item, "shape", (0,))) == 1 or isinstance(item, np.generic)


def _is_names(item: object) -> TypeGuard[list[str]]:
    return isinstance(item, list) and bool(item) and all(isinstance(name, str) for name in item)


def pop_fields(selection: object) -> tuple[str | list[str] | None, Any]:
    """Separate the field names of a structured data type from the rest of `selection`.

    Returns one name, a list of several, or ``None``; and the selection without the names, which is not a tuple if only
    one item remains.

    >>> pop_fields("x"), pop_fields((0, "x", "y")), pop_fields((1, 2))
    (('x', ()), (['x', 'y'], 0), (None, (1, 2)))
    """
    if isinstance(selection, str):
        return selection, ()
    if _is_names(selection):
        return list(selection), ()
    if not isinstance(selection, tuple) or (len(selection) > 1 and _BASIC.issuperset(map(type, selection))):
        return None, selection
    names: list[str] = []
    rest = []
    several = False
    for item in selection:
        if isinstance(item, str):
            names.append(item)
        elif _is_names(item):
            names += item
            several = True
        else:
            rest.append(item)
    fields = None if not names else names[0] if len(names) == 1 and not several else names
    return fields, rest[0] if len(rest) == 1 and not isinstance(rest[0], tuple) else tuple(rest)
