"""Let every system call of a workload fail with every error, and kill the program there, with both engines (`strace`).

`tests/faults/workloads.py` has the workloads, `tests/faults/injection.py` the faults. A number is a fault in a fixed order in
which all workloads are mixed; behind the last one the first one comes again. Needs strace, which
`scripts/install_test_servers.sh` installs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

from campaigns.slices import Slice

from tests.faults.injection import KILL, Cases
from tests.stores.tracing import strace

SUMMARY = "a workload of which one system call fails, or that is killed there, with both engines"
SLICE_S = 60


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do faults from `begin` on, for so long."""
    at, until = begin, time.monotonic() + seconds
    warnings.simplefilter("ignore")
    cases = Cases(strace())
    try:
        while time.monotonic() < until:
            part, ends = Slice(at), min(until, time.monotonic() + SLICE_S)
            while time.monotonic() < ends:
                _do(cases, part.to, part)
                part.to += 1
            at = part.to
            yield part
    finally:
        cases.close()


def repeat(number: int) -> str | None:
    """Do one number again."""
    part = Slice(number)
    cases = Cases(strace())
    try:
        _do(cases, number, part)
    finally:
        cases.close()
    return "\n".join(part.findings) or None


def _do(cases: Cases, number: int, part: Slice) -> None:
    bench, fault = cases[number]
    ended, wrong = bench.judge(fault)
    part.count("cuts" if fault.kind == KILL else "errors")
    part.count("that came into effect", bool(ended.injected or (ended.code or 0) < 0))
    if wrong:
        part.find(number, f"{bench.workload.name} {bench.engine} {fault}: {wrong}")
