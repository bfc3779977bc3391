"""The short form of `scripts/campaigns/scarce.py`: some limits for every program with every layout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.scarcity import ACTIONS, LAYOUTS, LIMITS, Bench, Case, is_ours

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif("sys.platform != 'linux'", reason="limits of the address space are those of Linux"),
]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("action", ACTIONS)
def test_what_runs_out_is_a_typed_error_and_leaves_old_or_new_values(bench: Bench, action: str, engine: str) -> None:
    wrong, ran_out = [], 0
    amounts = [*LIMITS["memory"][::4]]
    for number, layout in [*enumerate(LAYOUTS)][engine == "native" :: 2]:  # each layout with one of the engines
        cases = [
            Case(layout, action, engine, "memory", amounts[number % len(amounts)]),
            Case(layout, action, engine, "descriptors", number % 4),
            Case(layout, action, engine, "file size", 150_001 * (number % 3)),
        ]
        for case in filter(is_ours, cases):
            came, told = bench.judge(case)
            ran_out += came
            wrong += [f"{case}: {told}"] if told else []
    assert wrong == []
    assert ran_out
