"""Which tasks of a saved plan are done: markers in the folder ``done``, each for a range of tasks.

A marker says that its tasks have ended; it is written after them. A marker that is lost costs a repetition, nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from itertools import pairwise

from tessarr.common import strict_json
from tessarr.plan.task import Receipt, digest_of
from tessarr.stores.base import Store

_FOLDER = "done/"


class Ranges:
    """A set of task numbers, as sorted ranges that do not touch.

    >>> done = Ranges([(0, 2), (4, 5)])
    >>> done.add(2, 4)
    >>> list(done), 3 in done, list(done.missing(8))
    ([(0, 5)], True, [5, 6, 7])
    """

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._ranges: list[tuple[int, int]] = []
        for start, stop in ranges:
            self.add(start, stop)

    def add(self, start: int, stop: int) -> None:
        """Add ``start … stop - 1``."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted([*self._ranges, (start, stop)]):
            if merged and low <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(high, merged[-1][1])
            else:
                merged.append((low, high))
        self._ranges = merged

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._ranges)

    def __contains__(self, task: int) -> bool:
        return any(start <= task < stop for start, stop in self._ranges)

    def __len__(self) -> int:
        return sum(stop - start for start, stop in self._ranges)

    def missing(self, count: int, first: int = 0) -> Iterator[int]:
        """Yield the tasks from `first` to ``count - 1`` that are not in the set."""
        edges = [first, *(edge for span in self._ranges for edge in span), count]
        for start, stop in list(pairwise(edges))[::2]:
            yield from range(max(start, first), min(stop, count))


def done_in(store: Store, prefix: str) -> Ranges:
    """Read the markers of the plan at `prefix`."""
    names = (key[len(prefix + _FOLDER) :] for key in store.list_prefix(prefix + _FOLDER))
    found = (name.split("-")[:2] for name in names if name.endswith(".json"))
    return Ranges((int(start), int(stop)) for start, stop in found)


def mark(store: Store, prefix: str, receipts: list[Receipt]) -> None:
    """Write markers for tasks that have ended: one for each range."""
    by_task = {receipt.task: receipt for receipt in receipts}
    for start, stop in Ranges((task, task + 1) for task in by_task):
        ended = [by_task[task] for task in range(start, stop)]
        key = f"{prefix}{_FOLDER}{start}-{stop}-{secrets.token_hex(4)}.json"
        marker = {
            "tasks": [start, stop],
            "nbytes": sum(receipt.nbytes for receipt in ended),
            "digest": digest_of(ended),
        }
        store.set(key, strict_json.dumps(marker))
