"""Let every system call of a workload fail with every error, and kill the program there, with both engines (`strace`).

`tests/faults/workloads.py` has the workloads, `tests/faults/injection.py` the faults. A number is a fault in a fixed order in
which all workloads are mixed; behind the last one the first one comes again. Needs strace, which
`scripts/install_test_servers.sh` installs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from campaigns.slices import Slice, repeated, timed

from tests.faults.injection import KILL, Cases
from tests.stores.tracing import strace

SUMMARY = "a workload of which one system call fails, or that is killed there, with both engines"


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do faults from `begin` on, for so long."""
    warnings.simplefilter("ignore")
    with closing(Cases(strace())) as cases:
        yield from timed(begin, seconds, partial(_do, cases))


def repeat(number: int) -> str | None:
    """Do one number again."""
    with closing(Cases(strace())) as cases:
        return repeated(number, partial(_do, cases))


def _do(cases: Cases, number: int, part: Slice) -> None:
    bench, fault = cases[number]
    ended, wrong = bench.judge(fault)
    part.count("cuts" if fault.kind == KILL else "errors")
    part.count("that came into effect", bool(ended.injected or (ended.code or 0) < 0))
    if wrong:
        part.find(number, f"{bench.workload.name} {bench.engine} {fault}: {wrong}")
