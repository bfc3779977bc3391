"""One process of a probe: carries out tasks on a place that other workers use at the same time.

Reads lines of JSON from standard input, the first with the place (credentials never are arguments), each other one a task
with its seconds, and answers each by a line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import TypedDict

from tessarr.core.open import open_array
from tessarr.errors import TessarrError
from tessarr.stores.base import Store
from tessarr.stores.buffers import byte_view
from tessarr.stores.local.store import LocalStore
from tessarr.stores.url import store_from
from tessarr.stores.wrappers.prefix import PrefixStore
from tessarr.types import Buffer

COUNTER, VALUE, LOG = "counter", "value", "log"
PATIENCE_S = 30.0
"""How long a process of the probe waits for another one."""
READY = "ready"
NBYTES = 96 << 10
"""Bytes of the replaced value: more than a page or a packet."""


class Outcome(TypedDict):
    """What a worker found during one task."""

    done: int
    """Operations that the store acknowledged."""
    wrong: int
    """Values that were read and that no writer has written as a whole."""
    won: list[int]
    """Keys that this worker created."""
    error: str | None
    """The error that ended the task."""


def _count(store: Store, seconds: float, _: int, out: Outcome) -> None:
    """Add 1 to a counter repeatedly."""
    for _ in _until(seconds):
        store.update(COUNTER, _increment)
        out["done"] += 1


def _increment(value: Buffer | None) -> bytes:
    return str(int(bytes(byte_view(value)) if value is not None else 0) + 1).encode()


def _replace(store: Store, seconds: float, number: int, out: Outcome) -> None:
    """Replace a value by others of one repeated byte, and read it."""
    for turn in _until(seconds):
        store.set(VALUE, bytes([(16 * turn + number) % 256]) * NBYTES)
        found = store.get(VALUE)
        body = b"" if found is None else bytes(byte_view(found))
        out["wrong"] += len(body) != NBYTES or body.count(body[:1]) != NBYTES
        out["done"] += 1


def _create(store: Store, seconds: float, number: int, out: Outcome) -> None:
    """Create keys that the other workers create too."""
    for turn in _until(seconds):
        out["done"] += 1
        if store.set_if_not_exists(f"create/{turn}", str(number).encode()):
            out["won"].append(turn)


def _append(store: Store, seconds: float, number: int, out: Outcome) -> None:
    """Append rows ``(worker, number of the append)`` to an array."""
    array = open_array(store, path=LOG, mode="r+")
    for turn in _until(seconds):
        array.append([[number, turn]], on_hole="error", expire=PATIENCE_S)
        out["done"] += 1


def _hold(store: Store, _: float, __: int, out: Outcome) -> None:
    """Acquire the lock of the counter, and keep it until the process is killed."""
    with store.lock(COUNTER):
        _answer(out)
        time.sleep(3600)


TASKS: dict[str, Callable[[Store, float, int, Outcome], None]] = {
    "count": _count,
    "replace": _replace,
    "create": _create,
    "append": _append,
    "hold": _hold,
}


def _until(seconds: float) -> Turns:
    return Turns(time.monotonic() + seconds)


class Turns:
    """Count 0, 1, … until a time."""

    def __init__(self, end: float) -> None:
        self._end, self._turn = end, -1

    def __iter__(self) -> Turns:
        return self

    def __next__(self) -> int:
        self._turn += 1
        if self._turn and time.monotonic() >= self._end:  # at least one turn, however slow the place is
            raise StopIteration
        return self._turn


def carry_out(store: Store, task: str, seconds: float, number: int) -> Outcome:
    """Carry out one task as worker `number`. An error ends it, and is part of the outcome."""
    out = Outcome(done=0, wrong=0, won=[], error=None)
    try:
        TASKS[task](store, seconds, number, out)
    except (TessarrError, OSError) as error:
        out["error"] = f"{type(error).__name__}: {error}"
    return out


def inner_store(place: str, prefix: str, options: Mapping[str, object] | None) -> Store:
    """Open the part of `place` below `prefix`."""
    store, path = store_from(place, storage_options=options)
    whole = "/".join(part for part in (path, prefix) if part)
    return LocalStore(store.root / whole) if isinstance(store, LocalStore) else PrefixStore(store, whole)


def _answer(message: Outcome | str) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Carry out the tasks that come on standard input."""
    begin = json.loads(sys.stdin.readline())
    try:
        store = inner_store(begin["place"], begin["prefix"], begin["options"])
        store.set(f"begun/{begin['number']}", b"1")
        found = store.get(f"{LOG}/zarr.json")
    except (TessarrError, OSError) as error:
        _answer(f"{type(error).__name__}: {error}")
        return
    if found is None:
        _answer("a process does not find what another one has stored")
        return
    _answer(READY)
    for line in sys.stdin:
        task = json.loads(line)
        _answer(carry_out(store, task["task"], task["seconds"], begin["number"]))
