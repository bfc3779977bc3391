"""Tile arrays by boxes of whole stored chunks, and compare values bit by bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tessarr.core.array import Array
from tessarr.errors import BaseZarrError
from tessarr.indexing.boxes import Box, boxes_of_chunks
from tessarr.types import AnyArray, Shape


def boxes(array: Array, read: Shape | None, nbytes: int) -> Iterator[Box]:
    """Tile `array` by boxes, for reading from chunks of shape `read` (``None``: any part can be read)."""
    return boxes_of_chunks(array._metadata.chunk_grid.axes(array.shape), array.itemsize, nbytes, read)


def check_stored(values: AnyArray, target: Array, box: Box) -> None:
    """Raise `BaseZarrError` where a box of `target` does not hold `values`, bit by bit."""
    if not identical(values, values_in(target, box)):
        raise BaseZarrError(
            "the values read back differ from the source",
            store=target._store.url,
            path=target.name,
            got=f"a difference in [{', '.join(f'{part.start}:{part.stop}' for part in box)}]",
            hint="A lossy codec changes values: skip this comparison with verify=False (--no-verify)",
        )


def values_in(array: Array, box: Box) -> AnyArray:
    """Return the elements of a box in the array's dtype, which NumPy would change for the element of a 0-d array.

    Where elements may be missing, they are as engines hold them.
    """
    if array._metadata.data_type.may_be_missing:
        made = np.empty(tuple(part.stop - part.start for part in box), array._metadata.dtype)
        array.read(box or ..., out=made)
        return made
    value = array[box or ...]
    if isinstance(value, np.ndarray) and value.shape == tuple(part.stop - part.start for part in box):
        return value
    made = np.empty((), array.dtype)
    made[()] = value
    return made


_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
"""Integers that compare the bits of elements of a size."""


def identical(a: AnyArray, b: AnyArray) -> bool:
    """Return whether two arrays hold the same bits; byte order and the padding of records are ignored.

    >>> import numpy as np
    >>> identical(np.array([0.0]), np.array([-0.0])), identical(np.array([np.nan], ">f4"), np.array([np.nan], "<f4"))
    (False, True)
    """
    if a.shape != b.shape:
        return False
    if a.dtype.names is not None or b.dtype.names is not None:
        if a.dtype.names is None or b.dtype.names is None or len(a.dtype.names) != len(b.dtype.names):
            return False
        return all(identical(a[one], b[other]) for one, other in zip(a.dtype.names, b.dtype.names, strict=True))
    if a.dtype.kind in "OT" or b.dtype.kind in "OT":
        return all(same_value(x, y) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True))
    if a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return False
    bits = _BITS.get(a.dtype.itemsize)
    if bits is None:
        return _native(a).tobytes() == _native(b).tobytes()
    return bool((_native(a).view(bits) == _native(b).view(bits)).all())


def _native(a: AnyArray) -> AnyArray:
    return a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))


def same_value(x: object, y: object) -> bool:
    """Return whether two elements of object arrays are equal; rows (arrays) bit for bit."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return identical(x, y)
    return x == y or (x != x and y != y)  # only NaN differs from itself
