"""What the processes of a history do at one place, and how they write down what they asked and were answered.

A worker writes a line before each operation and one after it, to a file of its own, so that one that is killed leaves the
operation that it was in. Operations are those of `OPERATIONS`; `judge` has one rule for each kind of thing that they change.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import tessarr
from tessarr.core.claims import settle
from tessarr.errors import NodeNotFoundError, TessarrError
from tessarr.stores.remote.retry import Fault, RetryState
from tessarr.types import JSON

CELLS, WHOLES, CHUNK = 24, 4, 4
"""Elements that are registers; chunks that are one, and the elements of a chunk."""
LENGTHS, LENGTH = 20, 8
"""Arrays that are resized, and how long they are at first."""
EXPIRE_S = 3.0
"""For a history a process that has not gone on for so long counts as gone (in the library: 600 s), because many are killed."""
FAMILY_S = 0.25
"""Operations on nodes within so many seconds are on the same two."""
MOST_ROWS = 5


class Place(NamedTuple):
    """Where a history takes place."""

    url: str
    options: dict[str, str]
    is_local: bool
    """Whether nodes are removed, replaced and moved in one step, and transactions may replace chunks."""


def now() -> float:
    """The time of an event: the same clock in every process of the machine."""
    return time.monotonic()


def make(place: Place, *, sharded: bool) -> None:
    """Store the hierarchy that the workers change."""
    options: Any = place.options or None
    root: Any = tessarr.create_group(place.url, storage_options=options)
    layout: dict[str, Any] = {"shards": (3 * CHUNK,)} if sharded else {}
    root.create_array("cells", shape=(CELLS,), chunks=(CHUNK,), dtype="i8", fill_value=0, **layout)
    root.create_array("wholes", shape=(WHOLES * CHUNK,), chunks=(CHUNK,), dtype="i8", fill_value=0)
    root.create_group("marks")
    for name in ("log", "pairs/p", "pairs/q"):
        root.create_array(name, shape=(0, 4), chunks=(16, 4), dtype="i8", fill_value=0)
    root["pairs"].attrs["n"] = 0
    root.create_group("families")
    for number in range(LENGTHS):
        root.create_array(f"lengths/{number}", shape=(LENGTH,), chunks=(CHUNK,), dtype="i4", fill_value=0)


class Worker:
    """One process."""

    def __init__(self, place: Place, number: int, life: int, seed: int) -> None:
        self.place, self.number = place, number
        self.random = Random((seed, number, life).__hash__())
        self.life = life
        self.count = 0
        """Operations of this life."""
        self.given: Any = None
        options: Any = place.options or None
        root: Any = tessarr.open_group(place.url, mode="r+", storage_options=options)
        self.root, self.cells, self.wholes, self.log = root, root["cells"], root["wholes"], root["log"]
        self.marks = root["marks"]

    def unique(self) -> int:
        """A number that no other operation of the history has."""
        return (self.number + 1) << 40 | (self.life + 1) << 24 | (self.count + 1)

    def fresh(self, path: str, mode: Any = "r+") -> Any:
        """Open a node again."""
        options: Any = self.place.options or None
        return tessarr.open(self.place.url, path=path, mode=mode, storage_options=options)


# -- operations: each returns what it does ("do", "on", "given") and a function that does it ----------------------------------

Done = tuple[str, str, JSON, Callable[[], Any]]


def write_cell(w: Worker) -> Done:
    """Write a part of a chunk."""
    cell, value = w.random.randrange(CELLS), w.unique()
    return "write", f"cell {cell}", value, lambda: w.cells.__setitem__(cell, value)


def read_cell(w: Worker) -> Done:
    """Read a part of a chunk."""
    cell = w.random.randrange(CELLS)
    return "read", f"cell {cell}", None, lambda: int(w.cells[cell])


def write_whole(w: Worker) -> Done:
    """Write a chunk, all elements of which get one value."""
    chunk, value = w.random.randrange(WHOLES), w.unique()
    place = slice(CHUNK * chunk, CHUNK * (chunk + 1))
    return "write", f"whole {chunk}", value, lambda: w.wholes.__setitem__(place, value)


def read_whole(w: Worker) -> Done:
    """Read a chunk."""
    chunk = w.random.randrange(WHOLES)

    def read() -> Any:
        found = w.wholes[CHUNK * chunk : CHUNK * (chunk + 1)].tolist()
        return found[0] if len(set(found)) == 1 else f"torn: {found}"

    return "read", f"whole {chunk}", None, read


def set_mark(w: Worker) -> Done:
    """Set an attribute of which there are few, in one document."""
    mark, value = w.random.randrange(3), w.unique()
    return "write", f"mark {mark}", value, lambda: w.marks.attrs.__setitem__(f"m{mark}", value)


def read_mark(w: Worker) -> Done:
    """Read an attribute."""
    mark = w.random.randrange(3)
    return "read", f"mark {mark}", None, lambda: w.fresh("marks", "r").attrs.get(f"m{mark}", 0)


def rows_of(given: Any) -> list[tuple[int, ...]]:
    """The rows of an append: whose, which, which row of how many."""
    worker, number, count = given
    return [(worker, number, row + 1, count) for row in range(count)]


def append(w: Worker) -> Done:
    """Append some rows."""
    given = [w.number + 1, w.life << 24 | w.count + 1, w.random.randint(1, MOST_ROWS)]
    rows = np.array(rows_of(given), "i8")
    return "append", "log", given, lambda: list(w.log.append(rows, on_hole="void", expire=EXPIRE_S))


def look(w: Worker) -> Done:
    """Read the last rows."""

    def read() -> Any:
        array: Any = w.fresh("log", "r")
        first = max(0, len(array) - 40)
        return [len(array), first, array[first:].tolist()]

    return "look", "log", None, read


def commit(w: Worker) -> Done:
    """Append a row to two arrays, and count, in a transaction."""
    given = [w.number + 1, w.life << 24 | w.count + 1, 1]

    def act() -> Any:
        options: Any = w.place.options or None
        with tessarr.transaction(f"{w.place.url}/pairs", storage_options=options) as tx:
            pairs: Any = tx.group
            pairs.attrs["n"] = n = int(pairs.attrs["n"]) + 1
            for name in ("p", "q"):
                pairs[name].append(np.array(rows_of(given), "i8"))
        return n

    return "commit", "pairs", given, act


def look_at_pairs(w: Worker) -> Done:
    """Read two arrays and an attribute at one moment."""

    def read() -> Any:
        options: Any = w.place.options or None
        with tessarr.snapshot(f"{w.place.url}/pairs", storage_options=options) as taken:
            pairs: Any = taken
            rows = [[row for row in pairs[name][...].tolist() if any(row)] for name in ("p", "q")]
            return [int(pairs.attrs["n"]), len(rows[0]), rows[0] == rows[1]]

    return "look", "pairs", None, read


def _family(w: Worker) -> tuple[str, str]:
    """The family of two nodes that all workers use now, and one of the two."""
    return f"f{int(now() / FAMILY_S)}", w.random.choice("ab")


def _create(w: Worker, name: str, value: int, *, overwrite: bool = False) -> None:
    families: Any = w.root["families"]
    families.create_array(name, shape=(2,), chunks=(2,), dtype="i4", attributes={"by": value}, overwrite=overwrite)


def create_node(w: Worker) -> Done:
    """Create an array that is not there."""
    (family, one), value = _family(w), w.unique()
    return "create", f"family {family}", [one, value], lambda: _create(w, family + one, value)


def replace_node(w: Worker) -> Done:
    """Create an array in the place of what is there."""
    (family, one), value = _family(w), w.unique()
    return "replace", f"family {family}", [one, value], lambda: _create(w, family + one, value, overwrite=True)


def read_node(w: Worker) -> Done:
    """Look whether an array is there, and who made it."""
    family, one = _family(w)

    def read() -> Any:
        try:
            return w.fresh(f"families/{family}{one}", "r").attrs["by"]
        except NodeNotFoundError:
            return 0

    return "read", f"family {family}", [one], read


def delete_node(w: Worker) -> Done:
    """Delete an array."""
    family, one = _family(w)
    return "delete", f"family {family}", [one], lambda: w.root["families"].__delitem__(family + one)


def move_node(w: Worker) -> Done:
    """Give an array the name of the other one of its family."""
    family, one = _family(w)
    other = "b" if one == "a" else "a"
    return "move", f"family {family}", [one], lambda: w.root["families"].move(family + one, family + other)


def _length(w: Worker) -> tuple[str, Any]:
    """The array that all workers resize now."""
    number = int(now()) % LENGTHS
    return f"length {number}", w.fresh(f"lengths/{number}")


def resize(w: Worker) -> Done:
    """Change the shape of an array that others resize and append to."""
    on, array = _length(w)
    seen, length = len(array), w.random.randrange(40)
    return "resize", on, [seen, length], lambda: array.resize((length,))


def lengthen(w: Worker) -> Done:
    """Append to an array that others resize."""
    (on, array), count = _length(w), w.random.randint(1, 6)
    values = np.full(count, 1, "i4")
    return "append", on, count, lambda: int(array.append(values, on_hole="void", expire=EXPIRE_S)[0])


def write_two(w: Worker) -> Done:
    """Write a part of a chunk, and all of another one, in a transaction."""
    cell, chunk, value = w.random.randrange(CELLS), w.random.randrange(WHOLES), w.unique()

    def act() -> None:
        with tessarr.transaction(w.place.url) as tx:
            root: Any = tx.group
            root["cells"][cell] = value
            root["wholes"][CHUNK * chunk : CHUNK * (chunk + 1)] = value

    return "writes", "cells", [[f"cell {cell}", value], [f"whole {chunk}", value]], act


ANYWHERE = (
    *[write_cell, read_cell] * 4,
    *[write_whole, read_whole, set_mark, read_mark, append, create_node, read_node] * 2,
    *(look, commit, look_at_pairs, resize, lengthen),
)
LOCAL = (*ANYWHERE, *[replace_node, delete_node, move_node] * 2, write_two)
"""Where to remove and to replace a node takes several requests, no order is promised."""


def work(place: Place, number: int, life: int, seed: int, operations: int, file: str) -> None:
    """Do so many operations as worker `number`, in its life of this number, and write down each."""
    warnings.simplefilter("ignore")
    settle.EXPIRE_S = EXPIRE_S  # type: ignore[assignment]
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(line: dict[str, Any]) -> None:
        os.write(descriptor, json.dumps(line).encode() + b"\n")

    _note_repeated(note)
    try:
        worker = Worker(place, number, life, seed)
    except TessarrError as error:  # a server that gives no answer now
        note({"failed": f"{type(error).__name__}: {error}", "typed": True})
        return
    kinds = LOCAL if place.is_local else ANYWHERE
    for worker.count in range(operations):
        _one(worker, worker.random.choice(kinds), note)


def _note_repeated(note: Callable[[dict[str, Any]], None]) -> None:
    """Note, from now on, each request that failed and is sent again."""
    pause = RetryState.pause

    def noted(self: RetryState, fault: Fault) -> float:
        pause_s = pause(self, fault)
        note({"repeated": fault.text[:100]})
        return pause_s

    RetryState.pause = noted  # type: ignore[method-assign]


def _one(worker: Worker, kind: Callable[[Worker], Done], note: Callable[[dict[str, Any]], None]) -> None:
    try:
        do, on, given, act = kind(worker)
    except TessarrError as error:  # it could not be opened: nothing was asked yet
        note({"failed": f"{kind.__name__}: {type(error).__name__}: {error}", "typed": True})
        return
    note({"client": worker.number, "do": do, "on": on, "given": given, "begun": now()})
    try:
        got = act()
    except Exception as error:
        typed, in_doubt = isinstance(error, (TessarrError, KeyError)), getattr(error, "in_doubt", False)
        told = {"error": type(error).__name__, "told": str(error)[:300], "typed": typed, "in_doubt": in_doubt}
        note({**told, "ended": now()})
    else:
        note({"got": got, "ended": now()})


def lines(file: Path) -> list[dict[str, Any]]:
    """The lines of a history's file; the last may be a part, where the process was killed."""
    found = []
    for line in file.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            found.append(json.loads(line))
    return found
