"""Choose the boxes of a rechunking in two stages, with an intermediate array between them. Pure.

The first stage reads boxes of whole source chunks and stores each as one shard of the intermediate array; the second reads
boxes of whole target chunks from it. An inner chunk of the intermediate lies in both boxes, so that neither stage reads much
twice. It is largest when both boxes are as large as memory allows: each grows along the axes on which it is shorter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt, prod

from tessarr.plan.cost import Sizes, longest_chunks, reads_along
from tessarr.plan.strategies.stages import Stages
from tessarr.plan.tiling import Cut, Tiling, tiled
from tessarr.types import Shape

MORE_READ = 1.2
"""An inner chunk of the intermediate may lie in two boxes of the second stage, if these read at most this many times more."""
FOR_CHUNKS = 8
"""One part in so many of the memory is for inner chunks of the intermediate."""
COPIES = 3
"""So many of these a thread keeps: encoded, decoded, and one to encode into."""
NEAR = 10_000
"""Lengths that are tried for one that divides the other box."""

Fits = Callable[[list[int]], bool]


@dataclass(frozen=True, slots=True)
class Intermediate:
    """The shapes of an array between two stages."""

    shards: Shape
    """What a task of the first stage writes."""
    chunks: Shape
    """The inner chunks, which divide `shards`."""


def in_two_stages(sizes: Sizes, memory: int) -> tuple[Stages, Intermediate] | None:
    """Choose the boxes of both stages for tasks of at most `memory` bytes; ``None`` where one chunk is too much."""
    shape = sizes.shape
    least = memory // FOR_CHUNKS
    units = tuple(map(min, shape, sizes.read)), tuple(map(min, shape, longest_chunks(sizes.axes)))
    none = (1,) * len(shape)
    first, second = sizes.of_first_stage, replace(sizes, read=none, converted=0, encoded=(True, sizes.encoded[1]))
    read, write = list(units[0]), list(units[1])
    if not shape or 0 in shape or first.peak(read) + least > memory or second.peak(write) + least > memory:
        return None
    read = _grown(read, write, units[0], shape, lambda box: first.peak(box) + least <= memory)
    if any(sizes.in_flight):  # shards of which half is wanted are read whole
        second = replace(second, stops=tuple(read))
        if second.peak(write) + least > memory:
            return None
    write = _grown(write, read, units[1], shape, lambda box: second.peak(box) + least <= memory)
    tilings = Tiling(shape, tuple(read)), tiled(sizes.axes, write)
    chunks = list(map(_inner, shape, read, tilings[1].cuts))
    while prod(chunks) * sizes.itemsize * COPIES * sizes.threads > least and max(chunks) > 1:
        axis = chunks.index(max(chunks))
        chunks[axis] = max(divisor for divisor in _divisors(chunks[axis]) if divisor < chunks[axis])
    shards = tuple(-(-length // chunk) * chunk for length, chunk in zip(read, chunks, strict=True))
    return Stages.of(*tilings), Intermediate(shards, tuple(chunks))


def _grown(box: list[int], other: list[int], unit: Shape, shape: Shape, fits: Fits) -> list[int]:
    """Enlarge `box` along the axes on which it is shorter than `other`: the last first, since what is adjacent there is
    adjacent in storage, too."""
    for axis in reversed(range(len(box))):
        lengths = range(unit[axis], other[axis] + unit[axis], unit[axis])
        growing = partial(_with_length, box, axis, shape[axis])
        most = bisect_right(lengths, False, key=partial(_exceeds, fits, growing))
        if most:
            near = reversed(lengths[max(most // 2, most - NEAR) : most])
            dividing = (length for length in near if other[axis] % length == 0)
            box = growing(lengths[-1] if most == len(lengths) else next(dividing, lengths[most - 1]))
    return box


def _exceeds(fits: Fits, growing: Callable[[int], list[int]], length: int) -> bool:
    return not fits(growing(length))


def _with_length(box: list[int], axis: int, n: int, length: int) -> list[int]:
    return [*box[:axis], min(n, length), *box[axis + 1 :]]


def _inner(n: int, shard: int, cut: Cut) -> int:
    """Choose the length of inner chunks along an axis of `n` elements that is read in intervals `cut`."""
    if shard < n:
        lengths = _divisors(shard)
    else:  # the shard may end beyond the array
        longest = (
            cut if isinstance(cut, int) else max(stop - start for start, stop in zip((0, *cut), cut, strict=False))
        )
        lengths = iter({max(1, min(n, longest) // count) for count in range(1, 65)} | {1})
    return max(length for length in lengths if reads_along(n, cut, length) * length <= MORE_READ * (n + length - 1))


def _divisors(number: int) -> Iterator[int]:
    for low in range(1, isqrt(number) + 1):
        if number % low == 0:
            yield low
            yield number // low
