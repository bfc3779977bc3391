"""Watch a process and its descendants while it runs: the memory of each, and of all together (Linux)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

INTERVAL_S = 0.05


class Watched(NamedTuple):
    """How a process ended, and the memory that it used, in MB (10⁶ bytes)."""

    status: int | None
    """``None``: it was stopped because it took too long."""
    output: str
    error: str
    largest_process: float
    """The most resident memory of one process."""
    together: float
    """The most of all processes at one moment; what they share is counted in each."""


def watched(command: Sequence[str], *, environment: Mapping[str, str], cwd: Path, patience_s: float) -> Watched:
    """Run a command to its end, or for so long; what it started is killed then."""
    largest = together = 0.0
    with subprocess.Popen(
        command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=(cwd / ".error").open("w+"), text=True,
        start_new_session=True, stdin=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        until = time.monotonic() + patience_s
        while process.poll() is None and time.monotonic() < until:
            now = [_memory(pid) for pid in _tree(process.pid)]
            largest = max([largest, *(peak for _, peak in now)])
            together = max(together, sum(resident for resident, _ in now))
            time.sleep(INTERVAL_S)
        status = process.poll()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    file = cwd / ".error"
    error = file.read_text()
    file.unlink()
    return Watched(status, output, error, largest / 1e6, together / 1e6)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in file.read_text().split():
                yield from _tree(int(child))


def _memory(pid: int) -> tuple[int, int]:
    """Return the resident memory of a process, and its peak, in bytes; 0 for one that has ended."""
    with suppress(OSError):
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        resident, peak = (1024 * int(lines.get(name, "0 kB").split()[0]) for name in ("VmRSS", "VmHWM"))
        return resident, peak
    return 0, 0
