"""Which tasks of a saved plan are done: markers in the folder ``done``, each for a range of tasks.

A marker says that its tasks have ended; it is written after them. A marker that is lost costs a repetition, nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from tessarr.common import strict_json
from tessarr.errors import MetadataValidationError
from tessarr.stores.base import LockContext, Store
from tessarr.stores.functions import lock
from tessarr.stores.protocols import Lock
from tessarr.types import JSON

FOLDER = "done/"
DOCUMENTED = "documented"
"""The milestone of a plan whose documents are written: it is finished even if its source has changed since."""


class Receipt(NamedTuple):
    """What a task has done."""

    task: int
    nbytes: int
    """Bytes of the elements that it moved."""
    digest: str
    """SHA-256 of these elements, or stored values; empty where no marker will hold it."""
    result: JSON = None
    """What the task found, for a plan that writes nothing."""


def digest_of(receipts: list[Receipt]) -> str:
    """Combine the digests of tasks, in the order of the tasks."""
    return hashlib.sha256(b"".join(bytes.fromhex(receipt.digest) for receipt in sorted(receipts))).hexdigest()


class Ranges:
    """A set of task numbers, as sorted ranges that do not touch.

    >>> done = Ranges([(0, 2), (4, 5)])
    >>> done.add(2, 4)
    >>> list(done), 3 in done, list(done.missing(8))
    ([(0, 5)], True, [5, 6, 7])
    """

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._count = 0
        for start, stop in ranges:
            self.add(start, stop)

    def add(self, start: int, stop: int) -> None:
        """Add ``start … stop - 1``."""
        first = bisect_left(self._ranges, start, key=itemgetter(1))
        last = bisect_right(self._ranges, stop, key=itemgetter(0))
        if joined := self._ranges[first:last]:
            start, stop = min(start, joined[0][0]), max(stop, joined[-1][1])
        self._count += stop - start - sum(high - low for low, high in joined)
        self._ranges[first:last] = [(start, stop)]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._ranges)

    def __contains__(self, task: object) -> bool:
        if not isinstance(task, int):
            return False
        before = bisect_right(self._ranges, task, key=itemgetter(0)) - 1
        return before >= 0 and task < self._ranges[before][1]

    def __len__(self) -> int:
        return self._count

    def missing(self, count: int, first: int = 0) -> Iterator[int]:
        """Yield the tasks from `first` to ``count - 1`` that are not in the set."""
        edges = [first, *(edge for span in self._ranges for edge in span), count]
        for start, stop in list(pairwise(edges))[::2]:
            yield from range(max(start, first), min(stop, count))


def done_in(store: Store, prefix: str, tasks: int) -> Ranges:
    """Read the markers of the plan at `prefix`, of so many tasks. Raises `MetadataValidationError` for one of others."""
    found = Ranges()
    for key in store.list_prefix(prefix + FOLDER):
        name = key[len(prefix + FOLDER) :]
        if name.endswith(".json"):
            span = re.fullmatch(r"(\d+)-(\d+)-[0-9a-f]+\.json", name)
            start, stop = (0, 0) if span is None else (int(span[1]), int(span[2]))
            if not start < stop <= tasks:
                raise _damaged(key, f"of tasks 0 to {tasks}", name)
            found.add(start, stop)
    return found


def _damaged(key: str, expected: str, got: object) -> MetadataValidationError:
    return MetadataValidationError(
        "the marker of tasks is damaged", key=key, expected=expected, got=repr(got)[:80],
        hint="Remove it: its tasks are then carried out again",
    )  # fmt: skip


@contextmanager
def reading_result(task: int, found: JSON) -> Iterator[None]:
    """Raise `MetadataValidationError` in place of the errors to which a damaged result of a task leads."""
    try:
        yield
    except (LookupError, TypeError, ValueError) as error:
        raise _damaged(f"{FOLDER}{task}-…", "what a task found", found) from error


def mark(store: Store, prefix: str, receipts: list[Receipt]) -> None:
    """Write markers for tasks that have ended: one for each range."""
    by_task = {receipt.task: receipt for receipt in receipts}
    for start, stop in Ranges((task, task + 1) for task in by_task):
        ended = [by_task[task] for task in range(start, stop)]
        key = f"{prefix}{FOLDER}{start}-{stop}-{os.urandom(4).hex()}.json"
        marker: dict[str, JSON] = {
            "tasks": [start, stop],
            "nbytes": sum(receipt.nbytes for receipt in ended),
            "digest": digest_of(ended),
        }
        if any(receipt.result is not None for receipt in ended):
            marker["results"] = [receipt.result for receipt in ended]
        store.set(key, strict_json.dumps(marker))


def results_in(store: Store, prefix: str) -> dict[int, JSON]:
    """Read what the tasks of a plan found, by task."""
    found: dict[int, JSON] = {}
    for key in store.list_prefix(prefix + FOLDER):
        if key.endswith(".json") and (data := store.get(key)) is not None:
            marker = strict_json.loads(bytes(data), key=key)
            try:
                found.update(zip(range(*marker["tasks"]), marker["results"], strict=True))
            except (LookupError, TypeError, ValueError) as error:
                raise _damaged(key, "a result of each task", marker) from error
    return found


class Milestones:
    """The steps of finishing a plan that are behind it, as objects beside its document; in memory where it has no place."""

    def __init__(self, place: tuple[Store, str] | None) -> None:
        self._place = place
        self._reached: set[str] = set()
        self._values: dict[str, JSON] = {}

    def reached(self, name: str) -> bool:
        """Return whether a step was done, by any client."""
        if name not in self._reached and self._place is not None and self._place[0].exists(self._key(name)):
            self._reached.add(name)
        return name in self._reached

    def reach(self, name: str, value: JSON = None) -> None:
        """Record a step, and what came of it."""
        self._reached.add(name)
        self._values[name] = value
        if self._place is not None:
            self._place[0].set(self._key(name), strict_json.dumps(value))

    def reach_first(self, name: str, value: JSON) -> None:
        """Record a step, unless another client has done that meanwhile: then its value counts."""
        if self._place is None:
            self.reach(name, value)
        else:
            self._place[0].set_if_not_exists(self._key(name), strict_json.dumps(value))
            self._reached.add(name)

    def value(self, name: str) -> JSON:
        """Return what came of a step; ``None`` for one that was not done."""
        if name not in self._values and self._place is not None:
            data = self._place[0].get(self._key(name))
            return None if data is None else strict_json.loads(bytes(data), key=self._key(name))
        return self._values.get(name)

    def are_exclusive(self) -> bool:
        """Return whether `lock` excludes all other clients."""
        return self._place is None or isinstance(self._place[0], Lock)

    def lock(self) -> LockContext:
        """Exclude other clients that finish the plan, as far as the store can; else other threads."""
        return nullcontext() if self._place is None else lock(self._place[0], self._key("finished"))

    def _key(self, name: str) -> str:
        assert self._place is not None
        return f"{self._place[1]}{name}.json"
