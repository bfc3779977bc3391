"""Cut the power after every call of a workload, under models of file systems, with both engines.

`tests/faults/workloads.py` has the workloads, those with ``durable=True``, `tests/faults/disk.py` the models. A number is a
call of a workload; the list has an end. Needs strace.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial

from campaigns.slices import Slice, repeated, timed

from tests.faults.injection import ENGINES
from tests.faults.power import Moment, PowerBench, key_of
from tests.faults.workloads import WORKLOADS
from tests.stores.tracing import strace

SUMMARY = "programs during which the power is cut, under models of file systems, with both engines"
_Case = tuple[PowerBench, Moment, bool]


def slices(begin: int, seconds: float) -> Iterator[Slice]:
    """Do calls from `begin` on, for so long."""
    with ExitStack() as stack:
        cases = _cases(stack)
        yield from timed(begin, seconds, partial(_do, cases, set()), end=len(cases))


def repeat(number: int) -> str | None:
    """Do one number again."""
    with ExitStack() as stack:
        return repeated(number, partial(_do, _cases(stack), set()))


def _cases(stack: ExitStack) -> list[_Case]:
    warnings.simplefilter("ignore")
    cases: list[_Case] = []
    for workload in filter(lambda workload: workload.is_durable, WORKLOADS):
        for engine in ENGINES:
            bench = stack.enter_context(closing(PowerBench(workload, engine, strace())))
            moments = [*bench.moments()]
            cases += [(bench, moment, moment is moments[-1]) for moment in moments]
    return cases


def _do(cases: list[_Case], seen: set[tuple[int, str, bool]], number: int, part: Slice) -> None:
    bench, moment, is_end = cases[number % len(cases)]
    part.count("calls")
    for name, tree in moment.states:
        part.count("states")
        key = (id(bench), key_of(tree), is_end)
        if key in seen:
            continue
        seen.add(key)
        part.count("different ones")
        wrong = bench.judge_state(tree, is_end=is_end)
        if wrong:
            part.find(
                number,
                f"{bench.workload.name} {bench.engine}, after call {moment.number} ({moment.call}), {name}: {wrong}",
            )
            return
