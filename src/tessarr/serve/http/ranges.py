"""Byte ranges: parse the header ``Range``, resolve it to intervals of a value, and frame several of them.

- One range is answered by 206 and ``Content-Range``, several by 206 and ``multipart/byteranges``.
- Intervals that overlap are merged, in time proportional to n log n: a response is not longer than the value and its frames.
- A header of an unknown unit or a malformed one is ignored (the response is 200), as RFC 9110 demands.
- A range whose end is before its start covers nothing (416): ignoring it, as RFC 9110 allows, would send the whole value.
- More than `MAX_RANGES` are refused (416): ignoring them would send the whole value, which may be large.

Source: RFC 9110, 14.1, 14.2, 15.3.7.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_RANGES = 100
"""Ranges that one request may name. Readers of shards coalesce, and name fewer."""
_MAX_HEADER = 4096
_POSITIONS = re.compile(r"(\d{1,19})-(\d{0,19})|-(\d{1,19})")


class Interval(NamedTuple):
    """Bytes `start` to `stop` of a value, half-open and not empty."""

    start: int
    stop: int


class Spec(NamedTuple):
    """A range as a request names it."""

    first: int | None
    """The first byte; ``None``: the last `last` bytes."""
    last: int | None = None
    """The last byte; ``None``: to the end of the value."""


class TooManyRangesError(ValueError):
    """A request names more than `MAX_RANGES`."""


def parse(header: str | None) -> list[Spec] | None:
    """Parse the header ``Range``; ``None``: there is no header, or one that is ignored.

    Raises `TooManyRangesError`.

    >>> parse("bytes=0-9, -5"), parse("lines=1-2"), parse("bytes=a-b")
    ([Spec(first=0, last=9), Spec(first=None, last=5)], None, None)
    """
    if header is None:
        return None
    unit, equals, rest = header.partition("=")
    if not equals or unit.strip().lower() != "bytes":
        return None
    if len(header) > _MAX_HEADER or rest.count(",") >= MAX_RANGES:
        raise TooManyRangesError
    found: list[Spec] = []
    for text in rest.split(","):
        part = text.strip(" \t")
        if not part:
            continue
        match = _POSITIONS.fullmatch(part)
        if match is None:
            return None
        first, last, suffix = match.groups()
        if suffix is not None:
            found.append(Spec(None, int(suffix)))
        else:
            found.append(Spec(int(first), int(last) if last else None))
    return found or None


def resolve(specs: list[Spec], size: int) -> list[Interval]:
    """Resolve ranges to intervals of a value of `size` bytes, in the order of the request; overlapping ones are merged.

    Ranges outside of the value are left out: an empty result is answered by 416.

    >>> resolve([Spec(5), Spec(0, 3), Spec(50, 60)], 10)
    [Interval(start=5, stop=10), Interval(start=0, stop=4)]
    >>> resolve([Spec(0, 5), Spec(3, 9)], 100), resolve([Spec(None, 4)], 10), resolve([Spec(None, 0), Spec(10)], 10)
    ([Interval(start=0, stop=10)], [Interval(start=6, stop=10)], [])
    >>> resolve([Spec(9, 0)], 10)
    []
    """
    intervals = [one for one in (_interval(spec, size) for spec in specs) if one is not None]
    ordered = sorted(range(len(intervals)), key=lambda number: intervals[number])
    merged: dict[int, Interval] = {}
    last = -1
    for number in ordered:
        start, stop = intervals[number]
        if last >= 0 and start < merged[last].stop:
            merged[last] = Interval(merged[last].start, max(stop, merged[last].stop))
        else:
            last = number
            merged[number] = Interval(start, stop)
    return [merged[number] for number in sorted(merged)]


def _interval(spec: Spec, size: int) -> Interval | None:
    if spec.first is None:
        start, stop = max(0, size - (spec.last or 0)), size
    else:
        start, stop = spec.first, size if spec.last is None else min(size, spec.last + 1)
    return Interval(start, stop) if start < stop else None


def content_range(interval: Interval, size: int) -> str:
    """Return the value of ``Content-Range``.

    >>> content_range(Interval(0, 4), 10)
    'bytes 0-3/10'
    """
    return f"bytes {interval.start}-{interval.stop - 1}/{size}"


def frame(boundary: str, interval: Interval, size: int, kind: str, *, is_first: bool) -> bytes:
    """Return the bytes before one range of a ``multipart/byteranges`` content.

    `boundary` is a text that writers of data cannot know, so that no value can contain a frame.
    """
    start = "" if is_first else "\r\n"
    return (
        f"{start}--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {content_range(interval, size)}\r\n\r\n"
    ).encode("ascii")


def end(boundary: str) -> bytes:
    """Return the bytes after the last range of a ``multipart/byteranges`` content."""
    return f"\r\n--{boundary}--\r\n".encode("ascii")
