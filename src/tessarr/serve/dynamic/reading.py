"""Read the elements of a selection, within a budget; where a sample suffices, from some of the chunks only.

A *sample* of at most n chunks is a picture of a plane of any size: the chunks along each axis are divided into blocks of
consecutive chunks, and each block is represented by one of its chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tessarr.core.array import Array
from tessarr.dtypes.optional import unmasked
from tessarr.grids.base import Axis
from tessarr.serve.dynamic.budget import MAX_DECODED_NBYTES, Budget, check_decoded, check_result
from tessarr.serve.dynamic.query import Pick
from tessarr.types import AnyArray

Positions = npt.NDArray[np.int64]


class Values(NamedTuple):
    """Elements of a selection."""

    data: AnyArray
    """As stored; one dimension per axis that is not selected by an index."""
    is_sample: bool
    """Whether some elements stand for others, from chunks that were not read."""


def read_values(array: Array, picks: Sequence[Pick], budget: Budget, *, sample: int | None = None) -> Values:
    """Read the elements at `picks`, from at most `sample` chunks. Raises `Refusal` over the budget.

    The result is a new array in memory, of the shape of the ranges in `picks`.
    """
    shape = tuple(len(pick) for pick in picks if isinstance(pick, range))
    check_result(prod(shape) * max(1, array.dtype.itemsize))
    if 0 in shape:
        return Values(np.empty(shape, array.dtype), False)
    axes = array._chunk_axes
    counts = [_count(axis, pick) for axis, pick in zip(axes, picks, strict=True)]
    nbytes = chunk_nbytes(axes, picks, array.dtype.itemsize)
    if sample is not None:
        kept = _reduced(counts, max(1, min(sample, MAX_DECODED_NBYTES // max(1, nbytes))))
    else:
        kept = counts
    decoded = prod(kept) * nbytes
    check_decoded(decoded)
    chosen: list[int | slice | Positions] = []
    for axis, pick, before, after in zip(axes, picks, counts, kept, strict=True):
        if isinstance(pick, int):
            chosen.append(pick)
        elif after < before:
            chosen.append(_representatives(axis, np.asarray(pick, dtype=np.int64), after))
        else:
            chosen.append(slice(pick.start, pick.stop, pick.step))
    with budget.share(decoded):
        if kept == counts:
            data = array[tuple(chosen)]
        else:
            data = array.oindex[tuple(chosen)]
    if array._metadata.data_type.may_be_missing:
        data = unmasked(data, np.dtype(np.object_))
    return Values(np.asarray(data), kept != counts)


def _count(axis: Axis, pick: Pick) -> int:
    """Return how many chunks a pick touches, or a bound."""
    if isinstance(pick, int):
        return 1
    between = axis.find(pick[-1]) - axis.find(pick[0]) + 1
    return min(len(pick), between)


def chunk_nbytes(axes: Sequence[Axis], picks: Sequence[Pick], itemsize: int) -> int:
    """Return the size of one decoded chunk; where chunks differ, of the largest that the selection may touch."""
    sizes = []
    for axis, pick in zip(axes, picks, strict=True):
        size = axis.uniform
        if size is None:
            first, last = (pick, pick) if isinstance(pick, int) else (pick[0], pick[-1])
            size = max(axis.size(index) for index in range(axis.find(first), axis.find(last) + 1))
        sizes.append(size)
    return prod(sizes) * max(1, itemsize)


def _reduced(counts: Sequence[int], most: int) -> list[int]:
    """Reduce numbers of chunks until their product is at most `most`, the largest first."""
    kept = list(counts)
    while prod(kept) > most:
        largest = kept.index(max(kept))
        kept[largest] = -(-kept[largest] // 2)
    return kept


def _representatives(axis: Axis, positions: Positions, count: int) -> Positions:
    """Move sorted positions into `count` of the chunks that they touch: their order within a block of chunks stays.

    >>> from tessarr.grids.regular import RegularAxis
    >>> _representatives(RegularAxis(8, 2), np.arange(0, 8), 2).tolist()
    [2, 2, 3, 3, 6, 6, 7, 7]
    """
    chunks = axis.find_many(positions)
    distinct, where = np.unique(chunks, return_inverse=True)
    blocks = where * count // len(distinct)
    moved = np.empty_like(positions)
    for block in range(count):
        members = np.flatnonzero(blocks == block)
        if not len(members):
            continue
        touched = distinct[np.unique(where[members])]
        chunk = int(touched[len(touched) // 2])
        start = axis.start(chunk)
        size = min(axis.size(chunk), axis.length - start)
        moved[members] = start + (np.arange(len(members)) * size) // len(members)
    return moved
