"""What tessarr served inside zarr-python and what it left to it, counted."""

from __future__ import annotations

import threading
from collections import Counter
from typing import NamedTuple


class Stats(NamedTuple):
    """What `stats` answers."""

    reads: int
    """Selections that tessarr read."""
    writes: int
    """Selections that tessarr wrote."""
    fallbacks: dict[str, int]
    """Reason → selections that zarr-python itself read or wrote."""

    def __str__(self) -> str:
        lines = [
            f"{self.reads} reads and {self.writes} writes by tessarr, {sum(self.fallbacks.values())} by zarr-python"
        ]
        return "\n".join([*lines, *(f"  {count:6} {why}" for why, count in sorted(self.fallbacks.items()))])


class Counts:
    """The counters of one process; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Set every counter to zero."""
        with self._lock:
            self._reads = self._writes = 0
            self._fallbacks: Counter[str] = Counter()

    def read(self) -> None:
        """Count a selection that was read."""
        with self._lock:
            self._reads += 1

    def write(self) -> None:
        """Count a selection that was written."""
        with self._lock:
            self._writes += 1

    def fall_back(self, why: str) -> None:
        """Count a selection that was left to zarr-python."""
        with self._lock:
            self._fallbacks[why] += 1

    def stats(self) -> Stats:
        """The numbers so far."""
        with self._lock:
            return Stats(self._reads, self._writes, dict(self._fallbacks))


COUNTS = Counts()


def stats() -> Stats:
    """Tell how many selections tessarr served inside zarr-python, and why it left others to it, since the patch was applied."""
    return COUNTS.stats()
