"""Let every system call of a workload fail with every error, and kill the program there, with both engines (`strace`).

`tests/faults/workloads.py` has the workloads, `tests/faults/injection.py` the faults. A number is a fault in a fixed order in
which all workloads are mixed; behind the last one the first one comes again. Needs strace, which
`scripts/install_test_servers.sh` installs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache, partial
from multiprocessing.util import Finalize

from campaigns.slices import Slice, repeated, timed

from tests.faults.injection import KILL, Cases
from tests.stores.tracing import strace

SUMMARY = "a workload of which one system call fails, or that is killed there, with both engines"


@cache
def _cases() -> Cases:
    """Every fault, which takes half a minute to list, once in each process."""
    warnings.simplefilter("ignore")
    cases = Cases(strace())
    Finalize(None, cases.close, exitpriority=1)
    return cases


def slices(begin: int, seconds: float, end: int | None = None) -> Iterator[Slice]:
    """Do faults from `begin` on, for so long or up to `end`."""
    yield from timed(begin, seconds, partial(_do, _cases()), end)


def repeat(number: int) -> str | None:
    """Do one number again."""
    return repeated(number, partial(_do, _cases()))


def _do(cases: Cases, number: int, part: Slice) -> None:
    bench, fault = cases[number]
    ended, wrong = bench.judge(fault)
    part.count("cuts" if fault.kind == KILL else "errors")
    part.count("that came into effect", bool(ended.injected or (ended.code or 0) < 0))
    if wrong:
        part.find(number, f"{bench.workload.name} {bench.engine} {fault}: {wrong}")
