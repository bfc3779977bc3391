"""Give ``array.oindex``, ``array.vindex`` and ``array.blocks`` their indexing semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tessarr.types import Selected, SelectionLike, ValuesLike

if TYPE_CHECKING:
    from tessarr.core.array import Array


class OIndex:
    """Index orthogonally: each axis by its own index, the result is the outer product.

    >>> import tessarr, numpy as np
    >>> z = tessarr.array(np.arange(12).reshape(3, 4))
    >>> z.oindex[[0, 2], [1, 3]].tolist()
    [[1, 3], [9, 11]]
    """

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, selection: SelectionLike) -> Selected:
        return self._array.get_orthogonal_selection(selection)

    def __setitem__(self, selection: SelectionLike, value: ValuesLike) -> None:
        self._array.set_orthogonal_selection(selection, value)

    async def getitem(self, selection: SelectionLike) -> Selected:
        """Read asynchronously."""
        return await self._array.get_orthogonal_selection_async(selection)


class VIndex:
    """Index points: by the coordinates in one index array per axis, or by a mask of the array's shape.

    >>> import tessarr, numpy as np
    >>> z = tessarr.array(np.arange(12).reshape(3, 4))
    >>> z.vindex[[0, 2], [1, 3]].tolist()
    [1, 11]
    """

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, selection: SelectionLike) -> Selected:
        return self._array.get_point_selection(selection)

    def __setitem__(self, selection: SelectionLike, value: ValuesLike) -> None:
        self._array.set_point_selection(selection, value)

    async def getitem(self, selection: SelectionLike) -> Selected:
        """Read asynchronously."""
        return await self._array.get_point_selection_async(selection)


class Blocks:
    """Index by whole chunks (with shards: whole shards), with integers and slices of the chunk grid.

    >>> import tessarr, numpy as np
    >>> z = tessarr.array(np.arange(6), chunks=(2,))
    >>> z.blocks[1].tolist()
    [2, 3]
    """

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, selection: SelectionLike) -> Selected:
        return self._array.get_block_selection(selection)

    def __setitem__(self, selection: SelectionLike, value: ValuesLike) -> None:
        self._array.set_block_selection(selection, value)
