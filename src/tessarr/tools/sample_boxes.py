"""Choose the chunks of an array that are compared after a change of its description."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tessarr.indexing.boxes import Box, chunk_box
from tessarr.metadata.array import ArrayMetadata

_SAMPLES = 8


def boxes_of(metadata: ArrayMetadata, *, sample: bool) -> Iterator[Box]:
    """Yield the boxes of chunks to compare: all, or a sample spread evenly over the grid, first and last included."""
    axes = metadata.chunk_grid.axes(metadata.shape)
    counts = [axis.nchunks for axis in axes]
    if 0 in counts:
        return
    total = int(np.prod(counts, dtype=object)) if counts else 1
    if not sample or total <= _SAMPLES:
        chosen: Any = product(*(range(count) for count in counts))
    else:
        ranks = sorted({round(i * (total - 1) / (_SAMPLES - 1)) for i in range(_SAMPLES)})
        chosen = (_unravel(rank, counts) for rank in ranks)
    for coords in chosen:
        yield chunk_box(axes, coords)


def _unravel(rank: int, counts: list[int]) -> tuple[int, ...]:
    coords: list[int] = []
    for count in reversed(counts):
        rank, index = divmod(rank, count)
        coords.append(index)
    return tuple(reversed(coords))
