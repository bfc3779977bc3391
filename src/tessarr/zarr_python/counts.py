"""Count the selections that tessarr serves inside zarr-python, and those that fall back to zarr-python."""

from __future__ import annotations

import threading
from collections import Counter
from typing import NamedTuple


class FallbackError(RuntimeError):
    """In strict mode: a selection would have fallen back to zarr-python."""

    def __init__(self, why: str) -> None:
        """Of the reason `why`."""
        super().__init__(f"this selection would fall back to zarr-python: {why}")


def is_strict() -> bool:
    """Return whether zarr-python's setting ``codec_pipeline.strict`` is on: zarrs' pipeline has it too."""
    from zarr.core.config import config

    return bool(config.get("codec_pipeline.strict", False))


class Stats(NamedTuple):
    """The counters that `stats` returns."""

    reads: int
    """Selections that tessarr read."""
    writes: int
    """Selections that tessarr wrote."""
    fallbacks: dict[str, int]
    """The selections that fell back to zarr-python, by reason."""

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
        """Count a selection that fell back to zarr-python."""
        with self._lock:
            self._fallbacks[why] += 1

    def stats(self) -> Stats:
        """Return the counters."""
        with self._lock:
            return Stats(self._reads, self._writes, dict(self._fallbacks))


COUNTS = Counts()


def stats() -> Stats:
    """Return how many selections tessarr served inside zarr-python since the patch was applied, and why others fell back."""
    return COUNTS.stats()
