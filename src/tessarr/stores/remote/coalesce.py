"""Coalesce the requested ranges of one remote object into requests, and cut the ranges out of the responses.

A *span* is one request. Ranges closer together than ``max_gap`` share a span (they are coalesced), because the bytes
between them cost less than another request; a span is at most ``max_request`` long, so that one slow response does not
delay all ranges; a longer range is split into spans of at most `PIECE`, which are in flight concurrently. The limits
are settings (`coalescing`).

>>> plan_spans([ByteRange(0, 10), ByteRange(1000, 1010), ByteRange(-8)])
[ByteRange(start=0, stop=1010), ByteRange(start=-8, stop=None)]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tessarr.common.segments import flat
from tessarr.settings import config
from tessarr.types import Buffer, ByteRange

PIECE = 12 * 1024 * 1024
"""Bytes of one piece of a big object. Cloud vendors advise 8 to 16 MiB per range request."""

ENDLESS = 64 * PIECE
"""A range longer than this is treated as one to the end of the object."""


class Coalescing(NamedTuple):
    """The limits of coalescing, in bytes."""

    max_gap: int
    max_request: int


_known: tuple[int, Coalescing] = -1, Coalescing(0, 0)
"""The limits in the settings, and the number of changes of the settings at that time (`Config.changes`)."""


def coalescing() -> Coalescing:
    """Return the limits of coalescing in the settings ``array.sharding_coalesce_…``."""
    global _known
    changes, limits = _known
    if changes != config.changes:
        changes = config.changes
        limits = Coalescing(
            config.get("array.sharding_coalesce_max_gap_bytes"), config.get("array.sharding_coalesce_max_bytes")
        )
        _known = changes, limits
    return limits


class Piece(NamedTuple):
    """Bytes in the response to one span."""

    start: int
    """Offset of the first byte in the object."""
    body: memoryview


def plan_spans(
    ranges: Sequence[ByteRange], *, gap: int | None = None, cap: int | None = None, piece: int = PIECE
) -> list[ByteRange]:
    """Plan the spans that cover `ranges`; empty ranges need none. ``None``: the limits of the settings."""
    limits = coalescing()
    gap = limits.max_gap if gap is None else gap
    cap = limits.max_request if cap is None else cap
    bounded: list[tuple[int, int]] = []
    endless, suffixes = [], []
    for start, stop in ranges:
        if start < 0:
            suffixes.append(start)
        elif stop is None or stop - start > ENDLESS:  # without end, or with one beyond the end of any value
            endless.append(start)
        elif stop > start:
            bounded.append((start, stop))
    spans: list[ByteRange] = []
    if len(bounded) > 1:
        bounded = list(_merged(sorted(bounded), gap, cap))
    for start, stop in bounded:
        if stop - start > cap:
            spans += split(start, stop, cap=cap, piece=piece)
        else:
            spans.append(ByteRange(start, stop))
    spans += [ByteRange(min(starts)) for starts in (endless, suffixes) if starts]
    return spans


def split(start: int, stop: int, *, cap: int | None = None, piece: int = PIECE) -> list[ByteRange]:
    """Split ``start:stop``, if it is longer than `cap`, into equal parts of at most `piece` bytes.

    `cap`: ``None`` is the limit of the settings.
    """
    nbytes = stop - start
    cap = coalescing().max_request if cap is None else cap
    if nbytes <= cap:
        return [ByteRange(start, stop)]
    count = -(-nbytes // piece)
    edges = [start + nbytes * number // count for number in range(count + 1)]
    return [ByteRange(low, high) for low, high in itertools.pairwise(edges)]


def gather(pieces: Sequence[Piece], byte_range: ByteRange, nbytes: int) -> Buffer:
    """Cut `byte_range` of an object of `nbytes` bytes out of `pieces` (sorted by start).

    Returns a view where one piece has all bytes, else a copy. Raises `LookupError` for bytes that no piece has.
    """
    start, stop = byte_range.bounds(nbytes)
    if start >= stop:
        return b""
    for piece in pieces:
        if piece.start <= start and stop <= piece.start + piece.body.nbytes:
            return flat(piece.body)[start - piece.start : stop - piece.start].data
    out = bytearray(stop - start)
    at = start
    for piece in pieces:
        if piece.start <= at < piece.start + piece.body.nbytes:
            part = piece.body[at - piece.start : stop - piece.start]
            out[at - start : at - start + part.nbytes] = part
            at += part.nbytes
    if at < stop:
        raise LookupError(f"no piece has the bytes {at}-{stop}")
    return memoryview(out).toreadonly()


def _merged(parts: Sequence[tuple[int, int]], gap: int, cap: int) -> Iterator[tuple[int, int]]:
    """Join neighbours in `parts` (``(start, stop)``, sorted) into spans."""
    start = stop = -1
    for low, high in parts:
        reach = max(stop, high)
        if start >= 0 and low <= stop + gap and (reach - start <= cap or high <= stop):
            stop = reach
            continue
        if start >= 0:
            yield start, stop
        start, stop = low, high
    if start >= 0:
        yield start, stop
