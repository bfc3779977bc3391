"""Simulated workers: what they move is what the plan predicts, what is lost is counted, and time follows from rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessarr
import tessarr.plan
from tessarr.errors import UnsupportedOperationError
from tessarr.plan import Plan, Workers
from tessarr.plan.markers import Ranges

IDEAL = Workers(count=4, network=1e6, codecs=inf, latency=0.0)
"""Workers that only the network makes wait, and that live for ever."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """The memory of a task depends on its threads."""
    with tessarr.config.set({"threading.max_workers": 1}):
        yield


def _plan(**options: Any) -> Plan:
    """Plan to move 640 kB in several tasks."""
    source = tessarr.create_array({}, shape=(400, 1600), chunks=(10, 1600), dtype="u1")
    options = {"chunks": (10, 800), "strategy": "direct", "memory": 10**5, "verify": False, **options}
    return tessarr.plan.rechunk(source, {}, path="a", **options)


def test_undisturbed_workers_move_what_the_plan_predicts_in_the_time_that_their_network_needs() -> None:
    plan = _plan()
    costs = plan.describe().arrays[0]
    found = plan.simulate(IDEAL)
    assert (found.attempts, found.killed, found.failed, found.lost) == (plan.tasks, 0, 0, 0)
    assert (found.read, found.written) == pytest.approx((costs.bytes_read, costs.bytes_written))
    assert found.requests == pytest.approx(costs.chunks_read + costs.objects)
    assert plan.tasks > IDEAL.count
    rounds = -(-plan.tasks // IDEAL.count)
    assert found.seconds == pytest.approx(
        rounds * (costs.bytes_read + costs.bytes_written) / plan.tasks / IDEAL.network
    )
    assert found.busy == pytest.approx(plan.tasks / (rounds * IDEAL.count))
    assert f"{plan.tasks} attempts, of which 0 were killed and 0 failed" in str(found)


def test_each_limit_makes_workers_wait() -> None:
    plan = _plan()
    costs = plan.describe().arrays[0]
    moved, free = costs.bytes_read + costs.bytes_written, replace(IDEAL, count=1, network=inf)
    assert plan.simulate(replace(free, shared=1e5)).seconds == pytest.approx(moved / 1e5)
    assert plan.simulate(replace(free, codecs=1e5)).seconds == pytest.approx(moved / 1e5)
    assert plan.simulate(replace(free, network=1e5, stored=0.5)).seconds == pytest.approx(0.5 * moved / 1e5)
    latency = plan.simulate(replace(free, latency=0.5, in_flight=4)).seconds
    assert latency == pytest.approx((costs.chunks_read + costs.objects) * 0.5 / 4)
    together = plan.simulate(replace(free, count=plan.tasks, shared=1e5)).seconds
    assert together == pytest.approx(moved / 1e5)  # no more of them, and each has its share


def test_what_is_read_back_is_counted_once_and_not_between_stages() -> None:
    verified, plain = _plan(verify=True), _plan()
    whole = plain.describe().arrays[0].bytes_written
    assert verified.simulate(IDEAL).read - plain.simulate(IDEAL).read == pytest.approx(whole)
    staged = {"chunks": (400, 8), "strategy": "staged"}
    verified, plain = _plan(verify=True, **staged), _plan(**staged)
    assert verified.simulate(IDEAL).read - plain.simulate(IDEAL).read == pytest.approx(whole)


def test_a_stage_begins_when_the_one_before_has_ended() -> None:
    plan = _plan(chunks=(400, 8), strategy="staged")
    costs = plan.describe().arrays[0]
    assert costs.blocks == 1
    first, second = next(plan._manifest.tasks_of_blocks(range(1)))
    many = replace(IDEAL, count=plan.tasks)
    found = plan.simulate(many)
    size = costs.bytes_written
    assert (found.read, found.written) == pytest.approx((2 * size, 2 * size))
    assert found.seconds == pytest.approx(2 * size / len(first) / 1e6 + 2 * size / len(second) / 1e6)


def test_killed_and_failed_tasks_are_repeated_and_what_they_moved_is_lost() -> None:
    plan = _plan()
    calm = plan.simulate(IDEAL)
    rough = replace(IDEAL, lifetime=calm.seconds / 4, restart=0.1, failing=0.2)
    found = plan.simulate(rough, seed=3)
    assert found.killed > 0
    assert found.failed > 0
    assert found.attempts == plan.tasks + found.killed + found.failed
    assert found.read + found.written == pytest.approx(calm.read + calm.written + found.lost)
    assert found.seconds > calm.seconds
    assert found == plan.simulate(rough, seed=3)
    assert found != plan.simulate(rough, seed=4)


def test_a_plan_that_has_begun_is_simulated_from_there(tmp_path: Any) -> None:
    source = tessarr.create_array(tmp_path / "a", shape=(400, 1600), chunks=(10, 1600), dtype="u1")
    plan = tessarr.plan.rechunk(source, tmp_path / "b", chunks=(10, 800), memory=10**5)
    plan.save(tmp_path / "plan")
    plan.run_part(1, 4)
    left = plan.status().missing
    assert 0 < left < plan.tasks
    assert tessarr.plan.load(tmp_path / "plan").simulate(IDEAL).attempts == left
    assert plan.status().missing == left


@pytest.mark.parametrize("kind", ["scratch", "regroup", "copy", "pyramid", "digest", "check"])
def test_plans_of_every_kind_are_simulated(kind: str) -> None:
    group = tessarr.create_group({})
    group.create_array("0", shape=(64, 64), chunks=(4, 64), dtype="u1")
    plans = {
        "copy": lambda: tessarr.plan.copy(group, {}, path="a"),
        "pyramid": lambda: tessarr.plan.pyramid(group, "0", levels=3, memory=30_000),
        "digest": lambda: tessarr.plan.digest(group),
        "check": lambda: tessarr.plan.check(group, data="decode"),
        "scratch": lambda: _plan(chunks=(400, 8), strategy="scratch"),
        "regroup": lambda: _plan(chunks=(10, 1600), shards=(40, 1600), strategy="regroup", memory=200_000),
    }
    plan = plans[kind]()
    found = plan.simulate(IDEAL)
    assert found.attempts == plan.tasks > 0
    assert found.read >= sum(array.bytes_read for array in plan.describe().arrays)


def test_workers_that_hardly_live_long_enough_and_no_workers_are_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"much longer than workers live.*less memory"):
        _plan().simulate(replace(IDEAL, lifetime=1e-6))
    for nonsense in ({"count": 0}, {"failing": 1.0}):
        with pytest.raises(ValueError, match="at least one worker"):
            _plan().simulate(replace(IDEAL, **nonsense))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=30))
def test_ranges_are_the_set_of_their_numbers(added: list[tuple[int, int]]) -> None:
    ranges, numbers = Ranges(), set[int]()
    for start, length in added:
        ranges.add(start, start + length)
        numbers.update(range(start, start + length))
        assert len(ranges) == len(numbers)
    assert [task for low, high in ranges for task in range(low, high)] == sorted(numbers)
    assert all(low[1] < high[0] for low, high in zip(list(ranges), list(ranges)[1:], strict=False))
    assert [task for task in range(-1, 60) if task in ranges] == sorted(numbers)
    assert list(ranges.missing(60)) == [task for task in range(60) if task not in numbers]
