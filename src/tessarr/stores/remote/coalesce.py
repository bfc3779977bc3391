"""Coalesce the requested ranges of one remote object into requests, and cut the ranges out of the responses.

A *span* is one request. Ranges closer together than ``max_gap`` share a span (they are coalesced), because the bytes
between them cost less than another request; a span is at most ``max_request`` long, so that one slow response does not
delay all ranges; a longer range is split into spans of at most `PART_SIZE`, which are in flight concurrently. Both limits
are settings (`coalescing`).

>>> plan_spans([ByteRange(0, 10), ByteRange(1000, 1010), ByteRange(-8)])
[ByteRange(start=0, stop=1010), ByteRange(start=-8, stop=None)]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tessarr.common.segments import flat
from tessarr.settings import config
from tessarr.types import Buffer, ByteRange

PART_SIZE = 12 * 1024 * 1024
"""The most bytes in one request for a part of a big object. Cloud vendors advise 8 to 16 MiB per range request."""

BIG = 2 * PART_SIZE
"""Bytes. Of an object of at least this size, a request for the whole reads the head; the rest is requested concurrently."""

MULTIPART_FROM = 64 * 1024 * 1024
"""An object of at least this size is stored in parts."""

UPLOAD_SIZE = 5 * 1024 * 1024
"""The bytes of such a part, of which a client may hold a dozen. Vendors allow no smaller ones."""

UNBOUNDED = 64 * PART_SIZE
"""A range longer than this is treated as one to the end of the object."""


class CoalescingLimits(NamedTuple):
    """The limits of coalescing, in bytes."""

    max_gap: int
    max_request: int


_cached_limits: tuple[int, CoalescingLimits] = -1, CoalescingLimits(0, 0)
"""The limits in the settings, and the number of changes of the settings when they were read (`Config.changes`)."""


def coalescing() -> CoalescingLimits:
    """Return the limits of coalescing in the settings ``array.sharding_coalesce_…``."""
    global _cached_limits
    changes, limits = _cached_limits
    if changes != config.changes:
        changes = config.changes
        limits = CoalescingLimits(
            config.get("array.sharding_coalesce_max_gap_bytes"), config.get("array.sharding_coalesce_max_bytes")
        )
        _cached_limits = changes, limits
    return limits


class SpanBytes(NamedTuple):
    """The bytes of one span."""

    start: int
    """Offset of the first byte in the object."""
    body: memoryview


def plan_spans(
    ranges: Sequence[ByteRange],
    *,
    max_gap: int | None = None,
    max_request: int | None = None,
    part_size: int = PART_SIZE,
) -> list[ByteRange]:
    """Plan the spans that cover `ranges`; an empty range needs no span. ``None``: the limits of the settings."""
    limits = coalescing()
    max_gap = limits.max_gap if max_gap is None else max_gap
    max_request = limits.max_request if max_request is None else max_request
    bounded: list[tuple[int, int]] = []
    endless, suffixes = [], []
    for start, stop in ranges:
        if start < 0:
            suffixes.append(start)
        elif stop is None or stop - start > UNBOUNDED:  # to the end, or beyond the end of any value
            endless.append(start)
        elif stop > start:
            bounded.append((start, stop))
    spans: list[ByteRange] = []
    if len(bounded) > 1:
        bounded = list(merged(sorted(bounded), max_gap, max_request))
    for start, stop in bounded:
        if stop - start > max_request:
            spans += split(start, stop, max_request=max_request, part_size=part_size)
        else:
            spans.append(ByteRange(start, stop))
    spans += [ByteRange(min(starts)) for starts in (endless, suffixes) if starts]
    return spans


def split(start: int, stop: int, *, max_request: int | None = None, part_size: int = PART_SIZE) -> list[ByteRange]:
    """Split ``start:stop``, if it is longer than `max_request`, into equal parts of at most `part_size` bytes.

    `max_request`: ``None`` is the limit of the settings.
    """
    nbytes = stop - start
    max_request = coalescing().max_request if max_request is None else max_request
    if nbytes <= max_request:
        return [ByteRange(start, stop)]
    count = -(-nbytes // part_size)
    edges = [start + nbytes * number // count for number in range(count + 1)]
    return [ByteRange(low, high) for low, high in itertools.pairwise(edges)]


def extract(spans: Sequence[SpanBytes], byte_range: ByteRange, nbytes: int) -> Buffer:
    """Cut `byte_range` of an object of `nbytes` bytes out of `spans` (sorted by start).

    Returns a view where one span has all bytes, else a copy. Raises `LookupError` for bytes that no span has.
    """
    start, stop = byte_range.bounds(nbytes)
    if start >= stop:
        return b""
    for span in spans:
        if span.start <= start and stop <= span.start + span.body.nbytes:
            return flat(span.body)[start - span.start : stop - span.start].data
    return _joined(iter(spans), start, stop)


def extract_all(spans: list[SpanBytes], nbytes: int) -> Buffer:
    """Do what `extract` does for all bytes of an object. Removes the spans one by one, so that it is not in memory twice."""
    if len(spans) == 1:
        return extract(spans, ByteRange(0), nbytes)
    spans.reverse()
    return _joined((spans.pop() for _ in range(len(spans))), 0, nbytes)


def _joined(spans: Iterator[SpanBytes], start: int, stop: int) -> Buffer:
    out, at = np.empty(stop - start, np.uint8), start
    for span in spans:
        if span.start <= at < span.start + span.body.nbytes:
            part = flat(span.body)[at - span.start : stop - span.start]
            out[at - start : at - start + part.size] = part
            at += part.size
    if at < stop:
        raise LookupError(f"no span has the bytes {at}-{stop}")
    return out.data.toreadonly()


def merged(parts: Sequence[tuple[int, int]], max_gap: int, max_request: int) -> Iterator[tuple[int, int]]:
    """Coalesce neighbours in `parts` (``(start, stop)``, sorted) into spans of at most `max_request` bytes."""
    start = stop = -1
    for low, high in parts:
        end = max(stop, high)
        if start >= 0 and low <= stop + max_gap and (end - start <= max_request or high <= stop):
            stop = end
            continue
        if start >= 0:
            yield start, stop
        start, stop = low, high
    if start >= 0:
        yield start, stop
