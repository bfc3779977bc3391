"""zarr-python's ``zarr.core.indexing``."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from tessarr.core.array_parts.views import Blocks as BlockIndex
from tessarr.core.array_parts.views import OIndex, VIndex
from tessarr.core.asynchronous.async_array import AsyncOIndex, AsyncVIndex
from tessarr.errors import BoundsCheckError, NegativeStepError, VindexInvalidSelectionError

IntSequence: TypeAlias = Any
Selector: TypeAlias = Any
SelectorTuple: TypeAlias = Any
Selection: TypeAlias = Any
BasicSelector: TypeAlias = int | slice | EllipsisType
BasicSelection: TypeAlias = BasicSelector | tuple[int | slice | EllipsisType, ...]
CoordinateSelection: TypeAlias = Any
MaskSelection: TypeAlias = Any
OrthogonalSelection: TypeAlias = Any
Fields: TypeAlias = str | list[str] | tuple[str, ...]


def is_integer(x: object) -> bool:
    """Whether `x` is an integer, of Python or NumPy; booleans are none."""
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def is_bool(x: object) -> bool:
    """Whether `x` is a boolean, of Python or NumPy."""
    return isinstance(x, bool | np.bool_)


def is_slice(x: object) -> bool:
    """Whether `x` is a slice."""
    return isinstance(x, slice)


def ensure_tuple(v: object) -> tuple[Any, ...]:
    """Return `v`, wrapped in a tuple of one item unless it is a tuple."""
    return v if isinstance(v, tuple) else (v,)


__all__ = [
    "AsyncOIndex",
    "AsyncVIndex",
    "BasicSelection",
    "BasicSelector",
    "BlockIndex",
    "BoundsCheckError",
    "CoordinateSelection",
    "Fields",
    "MaskSelection",
    "NegativeStepError",
    "OIndex",
    "OrthogonalSelection",
    "Selection",
    "Selector",
    "SelectorTuple",
    "VIndex",
    "VindexInvalidSelectionError",
    "ensure_tuple",
    "is_bool",
    "is_integer",
    "is_slice",
]
