"""Align blocks to the stored values of an array, and resolve the region of an array that is written. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tessarr.core.array import Array
    from tessarr.grids.base import Axis
    from tessarr.indexing.boxes import Box


def aligned(
    blocks: Sequence[Sequence[int]], z: Array, region: Sequence[slice] | None = None
) -> tuple[tuple[int, ...], ...]:
    """Align `blocks` so that they begin and end at the edges of stored values of `z`, or of the region.

    An end within a stored value moves to the end of that value, so blocks grow by less than one stored value.

    >>> import tessarr, tessarr.dask
    >>> z = tessarr.zeros((10,), chunks=(4,), dtype="f8", store={})
    >>> tessarr.dask.aligned([(3, 3, 4)], z), tessarr.dask.aligned([(3, 3)], z, (slice(2, 8),))
    (((4, 4, 2),), ((6,),))
    """
    starts = [0] * z.ndim if region is None else [part.start or 0 for part in region]
    return tuple(
        _aligned_axis(sizes, axis, start) for sizes, axis, start in zip(blocks, z._bound.axes, starts, strict=True)
    )


def _aligned_axis(sizes: Sequence[int], axis: Axis, start: int) -> tuple[int, ...]:
    stop, at, ends = start + sum(sizes), start, []
    for size in sizes:
        at += size
        if at < stop:
            index = axis.find(at)
            end = at if axis.start(index) == at else axis.start(index) + axis.size(index)
            ends.append(min(end, stop))
    ends = sorted({*ends, stop} - {start})
    return tuple(end - begin for begin, end in zip([start, *ends], ends, strict=False)) or (0,)


def region_of(z: Array, region: object) -> Box:
    """Normalize `region` to a slice with start and stop per axis."""
    given = () if region is None else region if isinstance(region, tuple) else (region,)
    if len(given) > z.ndim or not all(isinstance(part, slice) for part in given):
        raise ValueError(f"a region is at most {z.ndim} slices, got {region!r}")
    parts = [*given, *[slice(None)] * (z.ndim - len(given))]
    if any(part.step not in (None, 1) for part in parts):
        raise ValueError(f"the slices of a region have step 1, got {region!r}")
    bounds = [part.indices(length) for part, length in zip(parts, z.shape, strict=True)]
    return tuple(slice(start, max(start, stop)) for start, stop, _ in bounds)
