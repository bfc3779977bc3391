"""What must be true of the histories of `clients` at one place, and of what is there in the end.

Of the invariants of transactions (docs/campaigns.md) `_pairs` judges I1, I2, I3, I5 and I6, and the registers, which
transactions and other writers change, I8.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tessarr
from tests.histories.checker import Event, UndecidedError, is_explained, published, register, rows
from tests.histories.clients import LENGTH, Place, lines, rows_of

CONTAINS = ("ContainsArrayError", "ContainsGroupError", "ContainsArrayAndGroupError")
MISSING = ("NodeNotFoundError", "ArrayNotFoundError", "GroupNotFoundError", "KeyError")
REFUSED = ("ConflictError", "StaleNodeError")
"""Answers that say that nothing was changed, unless they are in doubt. Every other error leaves open what was."""


class Refusal(str):
    """The name of an error that is an answer."""

    __slots__ = ()


class History(NamedTuple):
    """What the processes wrote down."""

    events: list[Event]
    wrong: list[str]
    """Errors that are not typed."""
    acknowledged: int
    open: int
    refused: int


def read(files: Iterable[Path]) -> History:
    """Read the files of all processes."""
    events: list[Event] = []
    wrong = []
    for file in files:
        asked: dict[str, Any] | None = None
        for line in [*lines(file), {}]:
            if "error" in line and not line["typed"]:
                wrong.append(f"{asked and (asked['do'], asked['on'], asked['given'])}: {line['error']}: {line['told']}")
            if asked is not None and "repeated" in line:
                asked["repeated"] = True
                continue
            if asked is not None:
                events.append(_event(asked, line))
            asked = line if "begun" in line else None
    is_open = sum(event.is_open for event in events)
    refused = sum(isinstance(event.got, Refusal) for event in events)
    return History(events, wrong, len(events) - is_open - refused, is_open, refused)


def _event(asked: dict[str, Any], answer: dict[str, Any]) -> Event:
    got, ended = answer.get("got"), answer.get("ended", math.inf)
    if "error" in answer:
        known = answer["error"] in (*CONTAINS, *MISSING, *REFUSED) and not answer.get("in_doubt")
        got, ended = (Refusal(answer["error"]), ended) if known else (None, math.inf)
    repeated = asked.get("repeated", False)
    return Event(asked["client"], asked["do"], asked["on"], asked["given"], got, asked["begun"], ended, repeated)


class End(NamedTuple):
    """What is there when all processes have ended."""

    rows: dict[str, list[tuple[int, ...]]]
    """By the path of an array to which rows are appended."""
    commits: int
    """How many transactions there were, as they counted themselves."""


def look(place: Place) -> End:
    """Open all that is there for writing, which completes what was begun, and read it whole."""
    options: Any = place.options or None
    root: Any = tessarr.open_group(place.url, mode="r+", storage_options=options)
    found = {}
    for path in ("log", "pairs/p", "pairs/q"):
        found[path] = [tuple(row) for row in root[path][...].tolist()]
    for _, node in root.members(max_depth=None):
        if isinstance(node, tessarr.Array):
            node[...]
    return End(found, int(root["pairs"].attrs["n"]))


def judge(events: Sequence[Event], end: End, *, is_local: bool) -> list[str]:
    """Say what is wrong."""
    things: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.do == "writes":
            for on, value in event.given:
                things[on].append(event._replace(do="write", on=on, given=value))
        else:
            things[event.on].append(event)
    found = []
    for on, these in sorted(things.items()):
        try:
            wrong = _judge(on, these, end, is_local=is_local)
        except UndecidedError as error:
            wrong = f"cannot be decided: {error}"
        if wrong:
            found.append(f"{on}: {wrong}")
    return found


def _judge(on: str, events: list[Event], end: End, *, is_local: bool) -> str | None:
    if on.startswith(("cell ", "whole ", "mark ")):
        # Of a write that was refused nothing is there.
        wrong = register([event for event in events if not isinstance(event.got, Refusal)], 0)
        return wrong and f"I8: {wrong}"
    if on == "log":
        appends = [event for event in events if event.do == "append" and not isinstance(event.got, Refusal)]
        looks = [event for event in events if event.do == "look" and not event.is_open]
        # Where versions are hashes of values, the rows of an append that was stopped for so long that they were given up may be
        # seen until it goes on, and removes them.
        others = [
            event for event in events if event.do == "append" and (event.is_open or isinstance(event.got, Refusal))
        ]
        late = () if is_local else {row for event in others for row in rows_of(event.given)}
        return rows(appends, end.rows["log"], rows_of) or published(looks, end.rows["log"], late)
    if on == "pairs":
        return _pairs(events, end)
    if on.startswith("length "):
        return None if is_explained(events, LENGTH, _resized if is_local else _resized_by_requests) else _told(events)
    return None if is_explained(events, (0, 0), _named) else _told(events)


def _told(events: Sequence[Event]) -> str:
    told = [
        f"  {event.begun:.4f}-{event.ended:.4f} {event.client}: {event.do} {event.on} {event.given} -> {event.got!r}"
        for event in sorted(events, key=lambda event: event.begun)
    ]
    return "\n".join(["no order explains", *told])


def _pairs(events: Sequence[Event], end: End) -> str | None:
    commits = [event for event in events if event.do == "commit" and not isinstance(event.got, Refusal)]
    p, q = ([row for row in end.rows[path] if any(row)] for path in ("pairs/p", "pairs/q"))
    if p != q:
        return f"I2: {len(p)} rows of committed transactions in one array, and {len(q)} in the other"
    if wrong := rows(commits, p, rows_of):
        return f"I3, I6: {wrong}"
    if end.commits != len(p):
        return f"I2: {end.commits} transactions counted, and {len(p)} rows"
    counts = [event.got for event in commits if not event.is_open]
    if len(set(counts)) < len(counts):
        return "I5: two transactions read and changed one count at the same time"
    looks = [event for event in events if event.do == "look" and not event.is_open]
    mixed = [event.got for event in looks if event.got[0] != event.got[1] or not event.got[2]]
    return f"I1: a snapshot shows {mixed[0]}" if mixed else None


def _named(state: Any, event: Event) -> Iterable[Hashable]:
    """A family of two names, each with the number of what is there, or 0."""
    at = "ab".index(event.given[0])
    there, other = state[at], state[1 - at]

    def after(one: int, two: int) -> tuple[int, int]:
        return (one, two) if at == 0 else (two, one)

    if isinstance(event.got, Refusal):
        if event.got in MISSING:
            return [state] if event.do in ("delete", "move") and not there else []
        if event.got in CONTAINS:
            return [state] if (other if event.do == "move" else there) else []
        return [state]
    if event.do == "read":
        return [state] if event.is_open or event.got == there else []
    if event.do == "create":
        return [] if there else [after(event.given[1], other)]
    if event.do == "replace":
        return [after(event.given[1], other)]
    if event.do == "delete":  # of two at once both may succeed
        return [after(0, other)]
    return [after(0, there)] if there and not other else []


def _resized(state: Any, event: Event) -> Iterable[Hashable]:
    """The length of an array under locks."""
    if event.do == "append":
        if isinstance(event.got, Refusal):
            return [state]
        after = state + event.given
        return [after] if event.is_open or event.got == after else []
    seen, length = event.given
    if isinstance(event.got, Refusal):
        return [state] if state != seen else []
    return [length] if state == seen else []


def _resized_by_requests(state: Any, event: Event) -> Iterable[Hashable]:
    """The length of an array in which rows of appends that failed stay, as void, and of which a resize is refused while
    an append is pending."""
    if event.do == "append":
        after = state + event.given
        if isinstance(event.got, Refusal):
            return [state, after]
        return [after] if event.is_open else [event.got] if event.got >= after else []
    seen, length = event.given
    if isinstance(event.got, Refusal):
        return [state]
    # One that finds, after a conflict, the shape that it wanted may have stored it, and its answer was lost.
    return [length] if state in (seen, length) else []
