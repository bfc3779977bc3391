"""Several ranges of one value by few requests, for `zarr.abc.store.Store`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tessarr.facade.zarr3.abc._values import ByteRequest, RangeByteRequest


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
    groups = [Group(item, ((at, slice(None)),)) for at, item in enumerate(ranges) if type(item) is not RangeByteRequest]
    known = [(at, item) for at, item in enumerate(ranges) if isinstance(item, RangeByteRequest)]
    start, end, members = 0, 0, list[tuple[int, RangeByteRequest]]()
    for at, item in sorted(known, key=lambda pair: pair[1].start):
        if members and (item.start - end > max_gap or max(end, item.end) - start > max_nbytes):
            groups.append(_group(start, end, members))
            members = []
        start, end = (start, max(end, item.end)) if members else (item.start, item.end)
        members.append((at, item))
    return [*groups, _group(start, end, members)] if members else groups


def _group(start: int, end: int, members: Sequence[tuple[int, RangeByteRequest]]) -> Group:
    parts = tuple((at, slice(item.start - start, item.end - start)) for at, item in members)
    return Group(RangeByteRequest(start, end), parts)
