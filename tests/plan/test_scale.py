"""Planning costs the same for a thousand tasks and for a million: calls and bytes are counted."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

import tessarr
import tessarr.plan
from tessarr.plan import Plan, cost


def _planned(chunks: int) -> tuple[Plan, int]:
    """Plan and describe a task per chunk; return the plan, and how many functions of Python were called."""
    source = tessarr.create_array({}, shape=(chunks * 100,), chunks=(100,), dtype="f8")
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        plan = tessarr.plan.rechunk(source, {}, path="x", chunks=(50,), memory=10**6)
        plan.describe()
    finally:
        sys.setprofile(None)
    return plan, calls


def test_a_million_tasks_are_planned_with_as_many_calls_as_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "SMALL_BOX", 0)  # a task for each chunk of the target
    _planned(10)  # what is imported and cached once
    small, few = _planned(1000)
    large, many = _planned(1_000_000)
    assert (small.tasks, large.tasks) == (1000, 1_000_000)
    assert many <= 1.1 * few
    assert many < 3000  # about a millisecond


def test_a_task_of_a_million_is_located_with_a_bounded_number_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "SMALL_BOX", 0)
    plan, _ = _planned(1_000_000)
    node, number = plan._manifest.locate(999_999)
    assert node.tiling is not None
    assert node.tiling.box(number) == (slice(99_999_900, 100_000_000),)
    assert len(list(plan._missing(range(999_999, 1_000_000)))) == 1
