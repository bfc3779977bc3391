"""The short form of `scripts/campaigns/faults.py`: some faults of every workload, and what the campaign found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.injection import ENGINES, KILL, Bench, Fault
from tests.faults.workloads import WORKLOADS, Workload
from tests.stores.tracing import strace

pytestmark = pytest.mark.filterwarnings("ignore")
BY_NAME = {workload.name: workload for workload in WORKLOADS}
BY_TURNS = [
    pytest.param(workload, ENGINES[at % len(ENGINES)], id=workload.name) for at, workload in enumerate(WORKLOADS)
]
"""Each workload with one of the engines. The campaign has both."""


@pytest.fixture(scope="module")
def program() -> str:
    return strace()


@pytest.fixture
def bench(workload: Workload, engine: str, program: str) -> Iterator[Bench]:
    made = Bench(workload, engine, program)
    yield made
    made.close()


@pytest.mark.parametrize(("workload", "engine"), BY_TURNS)
def test_faults_leave_old_or_new_values_and_typed_errors(bench: Bench) -> None:
    faults = bench.faults()
    wrong = []
    injected = 0
    for fault in faults[:: len(faults) // 4]:
        ended, told = bench.judge(fault)
        injected += ended.injected or ended.code == -9
        wrong += [f"{fault}: {told}"] if told else []
    assert wrong == []
    assert injected


FOUND = (
    ("attributes", "unlink", "ENOMEM"),
    ("attributes", "flock", "EACCES"),
    ("append", "pread64", "EIO"),
    ("append", "ftruncate", "ENOSPC"),
    ("zip", "unlink", "EACCES"),
    ("rechunk", "mkdir", "EROFS"),
    ("rechunk", "rename", "EDQUOT"),
)
"""Workload, call and error after which an error was not one of tessarr, or said that a value was not written."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("workload", "call", "error"), [(BY_NAME[name], *rest) for name, *rest in FOUND])
def test_what_was_found_does_not_come_back(bench: Bench, call: str, error: str) -> None:
    faults = [fault for fault in bench.faults() if fault.call == call and fault.kind == error]
    assert [told for fault in faults if (told := bench.judge(fault)[1])] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("workload", [BY_NAME["part"]])
def test_the_judge_finds_what_is_half_done(bench: Bench) -> None:
    assert bench.faults()
    whole = bench.after
    ended = bench.judge(Fault("openat", 1, KILL))[0]
    half = {**whole, "a from (0,)": [7] * 16}
    assert "neither old nor new" in str(bench._compare(ended, half))
    assert bench._compare(ended, whole) is None
    assert "something else" in str(bench._compare(bench.clean, bench.before))
