"""Judge histories: whether what several clients were answered is what some order of their operations explains.

A history is a list of `Event`. An order must keep to time: of two operations of which one ended before the other began,
that one comes first. An operation without an end (its client was killed, or got an error that leaves it open) happened
at any time after it began, or never.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

START = -math.inf


class Event(NamedTuple):
    """One operation of one client."""

    client: int
    do: str
    on: str
    """The thing that it was done to: a register, a family of nodes, an array."""
    given: Any
    got: Any
    """What was answered; the name of an error that says what is so (`judge.Refusal`) is an answer too."""
    begun: float
    ended: float
    """Infinity: unknown, and what was got is ``None``."""
    is_repeated: bool = False
    """Whether a request of it failed and was sent again: a write may have taken effect several times before it ended."""

    @property
    def is_open(self) -> bool:
        """Whether nobody knows if it happened."""
        return math.isinf(self.ended)


# -- registers ------------------------------------------------------------------------------------------------------------


def register(events: Sequence[Event], initial: Any) -> str | None:
    """Judge writes (``do`` is "write") and reads of one value, where every write is of another value. Returns what is wrong.

    The operations on one value (its write, and the reads that gave it) are together in any order that explains them. So
    each value has an interval in which it must have been there, or, where all of them overlap, one in which it was
    there at some moment; and a history is explained if no two intervals of the first kind overlap, and none of the
    second lies within one of the first (Gibbons, Korach 1997). A write that was repeated may have put its value there anew, for
    a moment, until it ended: only reads that began later belong together.
    """
    writes = {event.given: (event.begun, event.ended) for event in events if event.do == "write"}
    repeated = {event.given for event in events if event.do == "write" and event.is_repeated}
    writes[initial] = (START, START)
    spans: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if event.do == "read" and not event.is_open:
            spans[event.got].append((event.begun, event.ended))
    unknown = spans.keys() - writes.keys()
    if unknown:
        return f"{sorted(map(str, unknown))} was read, and never written"
    needed, moments = [], []
    for value, write in writes.items():
        reads = spans.get(value, [])
        if math.isinf(write[1]) and write[1] > 0 and not reads:
            continue  # it may never have happened
        early = [read for read in reads if read[1] < write[0]]
        if early:
            return f"{value} was read before it was written"
        if value in repeated:
            meanwhile = [read for read in reads if read[0] <= write[1]]
            moments += [(max(begin, write[0]), min(end, write[1]), value) for begin, end in meanwhile]
            reads = [read for read in reads if read[0] > write[1]]
        first_end = min(end for _, end in (write, *reads))
        last_begin = max(begin for begin, _ in (write, *reads))
        if first_end < last_begin:
            needed.append((first_end, last_begin, value))
        else:
            moments.append((last_begin, first_end, value))
    return _overlap(sorted(needed, key=lambda zone: zone[:2]), moments)


def _overlap(needed: list[tuple[float, float, Any]], moments: Iterable[tuple[float, float, Any]]) -> str | None:
    for one, other in pairwise(needed):
        if other[0] < one[1]:
            return f"{one[2]} was there before and after {other[2]}"
    zones = iter(needed)
    zone = next(zones, None)
    for begin, end, value in sorted(moments, key=lambda moment: moment[:2]):
        while zone is not None and zone[1] < begin:
            zone = next(zones, None)
        if zone is not None and zone[0] < begin and end < zone[1]:
            return f"{value} was there while {zone[2]} was"
    return None


# -- objects with few operations -----------------------------------------------------------------------------------------

Step = Callable[[Any, Event], Iterable[Hashable]]
"""The states that an operation on a state may lead to with the answer that was got; none: it gives another answer there. Of an
open operation: the states that it may lead to."""
MOST_STATES = 200_000


class UndecidedError(Exception):
    """A history is too long to be judged."""


def is_explained(events: Sequence[Event], initial: Hashable, step: Step) -> bool:
    """Whether some order of the operations on one object gives their answers (Wing, Gong 1993; Lowe 2017).

    Raises `UndecidedError` after `MOST_STATES` states.
    """
    events = sorted(events, key=lambda event: event.begun)
    closed = sum(1 << number for number, event in enumerate(events) if not event.is_open)
    seen: set[tuple[int, Hashable]] = set()
    left = [(0, initial)]
    while left:
        done, state = left.pop()
        if done & closed == closed:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        if len(seen) > MOST_STATES:
            raise UndecidedError(f"{len(events)} operations")
        for number in _next(events, done):
            left += [(done | 1 << number, after) for after in step(state, events[number])]
    return False


def _next(events: Sequence[Event], done: int) -> Iterator[int]:
    """The operations that may come next: those that began before any that is left ended."""
    first_end = min((event.ended for number, event in enumerate(events) if not done >> number & 1), default=math.inf)
    for number, event in enumerate(events):
        if event.begun > first_end:
            return
        if not done >> number & 1:
            yield number


# -- rows ------------------------------------------------------------------------------------------------------------------


def rows(
    appends: Sequence[Event], found: Sequence[tuple[int, ...]], rows_of: Callable[[Any], list[tuple[int, ...]]]
) -> str | None:
    """Judge appends to one array by the rows that are there in the end: each that was acknowledged once, no other one more than
    once or in part, and in an order that keeps to time. Rows of zeros are what an append that did not end may leave.

    `rows_of` gives the rows of what an append was given; their first tuple tells it from all others.
    """
    by_first = {rows_of(event.given)[0]: event for event in appends}
    places: dict[tuple[int, ...], int] = {}
    at = 0
    while at < len(found):
        if not any(found[at]):
            at += 1
            continue
        event = by_first.get(found[at])
        if event is None:
            return f"row {at} is {found[at]}, which begins no append"
        expected = rows_of(event.given)
        if list(found[at : at + len(expected)]) != expected:
            return f"rows {at} to {at + len(expected)} are a part of {event.given}: {found[at : at + len(expected)]}"
        if expected[0] in places:
            return f"{event.given} is there twice, at {places[expected[0]]} and {at}"
        places[expected[0]] = at
        at += len(expected)
    lost = [event.given for event in appends if not event.is_open and rows_of(event.given)[0] not in places]
    if lost:
        return f"{len(lost)} appends were acknowledged and are lost, {lost[0]} first"
    latest = START
    for event in sorted(
        (event for event in appends if rows_of(event.given)[0] in places),
        key=lambda event: places[rows_of(event.given)[0]],
    ):
        if event.ended < latest:
            return f"{event.given} ended before another append began, and lies behind it"
        latest = max(latest, event.begun)
    return None


def published(
    looks: Sequence[Event], found: Sequence[tuple[int, ...]], late: Collection[tuple[int, ...]] = ()
) -> str | None:
    """Judge what readers saw of an array that only grows: ``(length, first row, rows)``. It must be what is there in
    the end, and who looks later sees as much. The rows `late` may have been seen where there are zeros in the end."""
    for event in looks:
        length, first, seen = event.got
        pairs = zip(map(tuple, seen), found[first : first + len(seen)], strict=False)
        if length > len(found) or not all(row == now or (not any(now) and row in late) for row, now in pairs):
            return f"client {event.client} saw rows {first} of {length} that are not those in the end: {seen}"
    ends = sorted((event.ended, event.got[0]) for event in looks)
    longest, number = 0, 0
    for event in sorted(looks, key=lambda event: event.begun):
        while number < len(ends) and ends[number][0] < event.begun:
            longest = max(longest, ends[number][1])
            number += 1
        if event.got[0] < longest:
            return f"client {event.client} saw {event.got[0]} rows after {longest} had been seen"
    return None
