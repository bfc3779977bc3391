"""How the parts wanted of one remote object become requests, and requests become the parts again.

A *span* is one request. Parts closer together than ``max_gap`` share a span (they are coalesced), because the bytes
between them cost less than another request; a span stops growing at ``max_request``, so that one slow answer does not
hold up everything; a part larger than that is cut into spans of at most `PIECE`, which travel side by side. The limits
are those of the settings (`coalescing`).

>>> [span.byte_range for span in plan_spans([ByteRange(0, 10), ByteRange(1000, 1010), ByteRange(-8)])]
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
"""A range longer than this is taken to mean "to the end"."""


class Coalescing(NamedTuple):
    """The limits of coalescing, in bytes."""

    max_gap: int
    max_request: int


def coalescing() -> Coalescing:
    """Return the limits of coalescing that the settings ``array.sharding_coalesce_…`` state now."""
    return Coalescing(
        config.get("array.sharding_coalesce_max_gap_bytes"), config.get("array.sharding_coalesce_max_bytes")
    )


class Span(NamedTuple):
    """One request for part of an object."""

    byte_range: ByteRange


class Piece(NamedTuple):
    """What a span brought."""

    start: int
    """Where in the object it begins."""
    body: memoryview


def plan_spans(
    ranges: Sequence[ByteRange], *, gap: int | None = None, cap: int | None = None, piece: int = PIECE
) -> list[Span]:
    """Plan the spans that cover `ranges`; empty ranges need none. ``None``: the limits of the settings."""
    limits = coalescing()
    gap = limits.max_gap if gap is None else gap
    cap = limits.max_request if cap is None else cap
    spans: list[Span] = []
    for start, stop in _merged(sorted(part for part in ranges if _is_bounded(part)), gap, cap):
        spans.extend(Span(part) for part in split(start, stop, cap=cap, piece=piece))
    endless = [part.start for part in ranges if part.start >= 0 and _is_endless(part)]
    if endless:
        spans.append(Span(ByteRange(min(endless))))
    suffixes = [part.start for part in ranges if part.start < 0]
    if suffixes:
        spans.append(Span(ByteRange(min(suffixes))))
    return spans


def split(start: int, stop: int, *, cap: int | None = None, piece: int = PIECE) -> list[ByteRange]:
    """Return ``start:stop`` in one part, or, above `cap`, in equal parts of at most `piece` bytes.

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
    """The bytes of `byte_range` of an object of `nbytes` bytes, out of `pieces` (sorted by start).

    A view where one piece has them all, else a copy. Raises `LookupError` where the pieces leave a hole.
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
        raise LookupError(f"bytes {at}-{stop} are in none of the pieces")
    return memoryview(out).toreadonly()


def _is_bounded(part: ByteRange) -> bool:
    return part.start >= 0 and part.stop is not None and part.stop > part.start and not _is_endless(part)


def _is_endless(part: ByteRange) -> bool:
    """Whether a range goes to the end of any value, so that it is not cut into pieces."""
    return part.stop is None or part.stop - part.start > ENDLESS


def _merged(parts: Sequence[ByteRange], gap: int, cap: int) -> Iterator[tuple[int, int]]:
    """`parts` (sorted by start) with neighbours joined."""
    start = stop = -1
    for part in parts:
        assert part.stop is not None
        reach = max(stop, part.stop)
        if start >= 0 and part.start <= stop + gap and (reach - start <= cap or part.stop <= stop):
            stop = reach
            continue
        if start >= 0:
            yield start, stop
        start, stop = part.start, part.stop
    if start >= 0:
        yield start, stop
