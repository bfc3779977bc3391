"""What the parts of `scripts/fuzz.py` share: places, and running programs that may hang. Only processor time counts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "fixtures" / "fuzz"
"""Of each target the smallest inputs that reach different code or errors, committed: ``TARGET.json``, members to inputs."""
SMALL = 1500
"""Bytes of an input of the corpus."""
KEPT = 40
"""Inputs of a member in the corpus."""
WITHIN_S = 20
"""Any one input must be done with before, in processor time."""
_NAP_S = 0.05


class Ended(NamedTuple):
    """Hold the output of a program, its exit status, its seconds of processor time, and its process id."""

    text: str
    status: int
    cpu: float
    pid: int


def ended(command: list[str], environment: dict[str, str], out: Path) -> Ended:
    """Run a program that prints a line at least once in each second of processor time.

    One that says nothing for long, while it works or while it could, is ended: it hangs where no alarm reaches it.
    """
    output = out / f"output-{os.getpid()}-{time.monotonic_ns()}"
    with output.open("wb") as file:
        child = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT)
        before, last = -1.0, -1
        while True:
            pid, status, usage = _wait(child.pid, 3 * WITHIN_S)
            if pid:
                break
            busy, size = _cpu(child.pid), output.stat().st_size
            idle = busy - before < 0.02 * WITHIN_S
            if before >= 0 and size == last and (idle or busy - before > 2 * WITHIN_S):
                child.send_signal(signal.SIGABRT)
            before, last = busy, size
    child.returncode = os.waitstatus_to_exitcode(status)
    text = output.read_text(encoding="utf-8", errors="replace")
    output.unlink()
    return Ended(text, child.returncode, usage.ru_utime + usage.ru_stime, child.pid)


def _wait(pid: int, seconds: float) -> tuple[int, int, Any]:
    """Call `os.wait4` with a timeout, in seconds during which this process was not paused."""
    for _ in range(round(seconds / _NAP_S)):
        found = os.wait4(pid, os.WNOHANG)
        if found[0]:
            return found
        time.sleep(_NAP_S)
    return os.wait4(pid, os.WNOHANG)


def _cpu(pid: int) -> float:
    """Return the seconds of processor time that a process has used; 0 if unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def limit_memory(most: int) -> None:
    """Limit the growth of the address space to so many bytes, if the system can."""
    try:
        import resource
    except ImportError:
        return
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[0]) if statm.exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + most,) * 2)


def alarm(seconds: int) -> None:
    """Raise `TimeoutError` in this process after so much processor time, if the system can; 0 cancels it."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, _late)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _late(*_: object) -> None:
    raise TimeoutError(f"not done within {WITHIN_S} s")
