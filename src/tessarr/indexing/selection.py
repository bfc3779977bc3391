"""The two full-rank selections to which every index expression is reduced.

`Outer` takes a slice or an index array per axis and selects their outer product; `Points` takes one coordinate array per
axis and selects the points that they name together. All other forms (integers that drop an axis, negative steps,
Ellipsis, masks, broadcasting, point arrays of several dimensions) are reduced to these: a `Request` holds the selection
and the relation of the user's array to it.

    basic, orthogonal, block  → Outer        coordinates, masks, NumPy-style mixtures → Points

Engines see only `Outer` and `Points`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tessarr.types import Shape

if TYPE_CHECKING:
    import numpy.typing as npt

    IndexArray: TypeAlias = npt.NDArray[np.int64]
else:
    IndexArray = np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Outer:
    """Select the outer product of one slice or index array per axis.

    Slices have ``0 <= start <= stop <= length`` and ``step >= 1``, and ``stop`` is the last element + 1 (an empty one
    is ``slice(0, 0, 1)``). Index arrays are 1-d int64, non-negative, in any order, and may repeat.
    """

    dims: tuple[slice | IndexArray, ...]

    @property
    def shape(self) -> Shape:
        """Full rank: one length per axis."""
        return tuple((d.stop - d.start + d.step - 1) // d.step if isinstance(d, slice) else len(d) for d in self.dims)

    @property
    def index(self) -> Any:
        """The NumPy index of the same elements in an array in memory."""
        arrays = sum(not isinstance(d, slice) for d in self.dims)
        if arrays <= 1:
            return self.dims
        return np.ix_(*(np.arange(d.start, d.stop, d.step) if isinstance(d, slice) else d for d in self.dims))


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Select the points ``(coords[0][k], coords[1][k], …)`` for each k: one 1-d int64 array per axis, of equal length.

    There is at least one axis (a 0-d array is selected by ``Outer(())``).
    """

    coords: tuple[IndexArray, ...]

    @property
    def shape(self) -> Shape:
        """``(number of points,)``."""
        return self.coords[0].shape

    @property
    def index(self) -> Any:
        """The NumPy index of the same elements in an array in memory."""
        return self.coords


Selection: TypeAlias = Outer | Points
