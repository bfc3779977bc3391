"""Several ranges of one value by few requests, for `zarr.abc.store.Store`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from tessarr.facade.zarr3.abc._values import ByteRequest, RangeByteRequest
from tessarr.stores.remote.coalesce import merged


class Group(NamedTuple):
    """A request, and the ranges that it answers."""

    request: ByteRequest | None
    members: tuple[tuple[int, slice], ...]
    """The position of each range in the caller's list, and where its bytes are in the response."""


def grouped(ranges: Sequence[ByteRequest | None], max_gap: int, max_nbytes: int) -> list[Group]:
    """Group ranges that begin and end at known positions and are at most `max_gap` bytes apart; others stay alone.

    >>> [group.members for group in grouped([RangeByteRequest(0, 4), None, RangeByteRequest(6, 9)], 2, 100)]
    [((1, slice(None, None, None)),), ((0, slice(0, 4, None)), (2, slice(6, 9, None)))]
    """
    alone = [Group(item, ((at, slice(None)),)) for at, item in enumerate(ranges) if type(item) is not RangeByteRequest]
    known = [(at, item) for at, item in enumerate(ranges) if isinstance(item, RangeByteRequest)]
    spans = list(merged(sorted((item.start, item.end) for _, item in known), max_gap, max_nbytes))
    members: list[list[tuple[int, slice]]] = [[] for _ in spans]
    for at, item in known:
        i = bisect_right(spans, (item.start, inf)) - 1
        members[i].append((at, slice(item.start - spans[i][0], item.end - spans[i][0])))
    return alone + [Group(RangeByteRequest(*span), tuple(found)) for span, found in zip(spans, members, strict=True)]
